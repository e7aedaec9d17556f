#include "check_place.h"

#define MAX_STATICS 4096u

static struct static_array statics[MAX_STATICS]; /* sorted by address */
static uint32_t static_count;

void places_forget_statics(void) { static_count = 0; }

void __asan_register_globals(const struct static_array *arrays, uint64_t count) {
  for (uint64_t i = 0; i < count && static_count < MAX_STATICS; i++) {
    uint32_t at = static_count++;
    for (; at && statics[at - 1].address > arrays[i].address; at--) statics[at] = statics[at - 1];
    statics[at] = arrays[i];
  }
}

void __asan_unregister_globals(const struct static_array *arrays, uint64_t count) {
  (void)arrays;
  (void)count;
}

/* The last region that begins at or before `address`, else -1. */
static int32_t region_before(uint64_t address) {
  static _Thread_local uint32_t last;
  uint32_t count = check_area->region_count < MAX_REGIONS ? check_area->region_count : MAX_REGIONS;
  const struct check_region *r = check_area->regions;
  if (last < count && r[last].address <= address && (last + 1 == count || address < r[last + 1].address))
    return (int32_t)last;
  uint32_t low = 0, high = count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (r[middle].address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (low) last = low - 1;
  return (int32_t)low - 1;
}

static int32_t static_before(uint64_t address) {
  int32_t at = (int32_t)static_count - 1;
  while (at >= 0 && statics[at].address > address) at--;
  return at;
}

/* ----------------------------------------------------------------------------------------------------------- stacks */

/* Clang's shadow of a stack: 0 where all of 8 bytes belong to variables, 1 to 7 where the first of them do, else a
 * code above 0x7f. A frame with arrays begins with a word that marks it and the address of a description of its
 * variables: their number, then for each offset, size, length of the name and the name. */
#define SHADOW(address) ((uint8_t *)(STACK_SHADOW + ((address) >> 3)))
#define LEFT_EDGE 0xf1u
#define FRAME_MARK 0x41b58ab3u

static bool stack_is_valid(uint64_t address, uint64_t size) {
  for (uint64_t at = address; at < address + size; at = (at | 7) + 1) {
    uint8_t code = *SHADOW(at);
    uint64_t end = (at | 7) + 1 < address + size ? 8 : (address + size - 1) % 8 + 1;
    if (code && (code > 7 || end > code)) return false;
  }
  return true;
}

static const char *frame_description(const struct tec *tec, uint64_t address, uint64_t *frame) {
  uint64_t low = stack_low(tec->id) + PAGE, at = address & ~7ull;
  while (at > low && *SHADOW(at) != LEFT_EDGE) at -= 8;
  while (at > low && *SHADOW(at - 8) == LEFT_EDGE) at -= 8;
  const uint64_t *words = (const uint64_t *)at;
  if (*SHADOW(at) != LEFT_EDGE || words[0] != FRAME_MARK || words[1] < ENGINE_LOW || words[1] >= CODE_HIGH) return NULL;
  *frame = at;
  return (const char *)words[1];
}

static uint64_t number_at(const char **text) {
  uint64_t value = 0;
  for (; **text >= '0' && **text <= '9'; ++*text) value = value * 10 + (uint64_t)(**text - '0');
  if (**text == ' ') ++*text;
  return value;
}

static void set_name(struct check_place *place, const char *name, size_t length) {
  if (length >= sizeof place->name) length = sizeof place->name - 1;
  memcpy(place->name, name, length);
  place->name[length] = 0;
}

static uint64_t distance(int64_t offset, uint64_t bytes) {
  return offset < 0 ? (uint64_t)-offset : (uint64_t)offset < bytes ? 0 : (uint64_t)offset - bytes + 1;
}

static void describe_stack(const struct tec *tec, uint64_t address, struct check_place *place) {
  uint64_t frame, best = UINT64_MAX;
  const char *text = frame_description(tec, address, &frame);
  for (uint64_t left = text ? number_at(&text) : 0; left; left--) {
    uint64_t offset = number_at(&text), bytes = number_at(&text), length = number_at(&text);
    int64_t from_start = (int64_t)(address - frame - offset);
    if (distance(from_start, bytes) < best) {
      best = distance(from_start, bytes);
      place->memory = MEMORY_NAMED;
      place->offset = from_start;
      place->bytes = bytes;
      set_name(place, text, length);
    }
    text += length + (text[length] == ' ');
  }
}

/* -------------------------------------------------------------------------------------------------------------- all */

static bool in_own_stack(const struct tec *tec, uint64_t address) {
  return address >= stack_low(tec->id) && address < stack_high(tec->id);
}

bool place_is_valid(const struct tec *tec, uint64_t address, uint64_t size) {
  if (address >= SHADOWED) return address == (uint64_t)&tec->event_state && size <= sizeof tec->event_state;
  if (in_own_stack(tec, address)) return address + size <= stack_high(tec->id) && stack_is_valid(address, size);
  if (is_stack(address)) return false;
  if (address >= ENGINE_LOW && address < CODE_HIGH) {
    int32_t at = static_before(address);
    return at >= 0 && address + size <= statics[at].address + statics[at].size;
  }
  int32_t at = region_before(address);
  const struct check_region *r = check_area->regions;
  return at >= 0 && address + size <= (uint64_t)r[at].address + r[at].size;
}

static void describe_static(uint64_t address, struct check_place *place) {
  int32_t at = static_before(address);
  if (at < 0 && static_count == 0) return;
  const struct static_array *array = &statics[at < 0 ? 0 : at];
  const char *name = array->name, *end = name + strlen(name);
  for (const char *c = name; *c; c++)
    if (*c == '.') name = c + 1;
  place->memory = MEMORY_NAMED;
  place->offset = (int64_t)(address - array->address);
  place->bytes = array->size;
  set_name(place, name, (size_t)(end - name));
}

/* Of two regions with the address between them, the nearer one. */
static void describe_region(uint64_t address, struct check_place *place) {
  const struct check_region *r = check_area->regions;
  uint32_t count = check_area->region_count;
  int32_t at = region_before(address);
  if (count == 0) return;
  uint32_t best = at < 0 ? 0 : (uint32_t)at;
  if (at >= 0 && best + 1 < count &&
      distance((int64_t)(address - r[best].address), r[best].size) > r[best + 1].address - address)
    best++;
  place->memory = MEMORY_REGION;
  place->region = best;
  place->offset = (int64_t)(address - r[best].address);
  place->bytes = r[best].size;
}

void place_describe(const struct tec *tec, uint64_t address, struct check_place *place) {
  memset(place, 0, sizeof *place);
  if (address >= SHADOWED) return;
  if (in_own_stack(tec, address))
    describe_stack(tec, address, place);
  else if (is_stack(address))
    *place = (struct check_place){.memory = MEMORY_STACK, .region = (uint32_t)((address - STACKS_LOW) / STACK_SIZE)};
  else if (address >= ENGINE_LOW && address < CODE_HIGH)
    describe_static(address, place);
  else if (address >= WINDOW_LOW)
    describe_region(address, place);
}
