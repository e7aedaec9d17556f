#include "check_uninit.h"

#include "check_access.h"
#include "check_place.h"
#include "object.h"

/* The state of memory: which bits are not initialised, where such a value comes from, and what stored it. The last is
 * where races keep their notes, which are looked for in other runs. */
#define VALUES(address) ((uint8_t *)(VALUE_SHADOW + (address)))
#define ORIGINS(address) ((uint32_t *)(ORIGIN_SHADOW + ((address) & ~3ull)))
#define STORES(address) ((uint32_t *)(RACE_SHADOW + ((address) & ~3ull)))
#define STORE(tec, site) ((tec) << 16 | (site))

/* Where values come from: the arrays, by their names. */
struct origin {
  const char *array;
  char name[48]; /* that of `array`, which may be gone when it is told */
};
#define MAX_ORIGINS 16384u
static struct origin origins[MAX_ORIGINS]; /* 0: unknown */
static uint32_t origin_count = 1;
#define SLOTS (2 * MAX_ORIGINS) /* of a table with open addressing */
static uint16_t slots[SLOTS];

/* What clang passes beside arguments and results; the layout is the one it uses for kernels. */
#define CONTEXT_BYTES 8192
static uint64_t contexts[MAX_TECS][CONTEXT_BYTES / 8];
/* For memory without shadow: values that are initialised, and a place for what nobody reads. */
static uint8_t nothing[4096], anything[4096];

static bool has_shadow(uint64_t address, uint64_t size) { return address < SHADOWED && size <= SHADOWED - address; }

static uint32_t origin_of(const char *array) {
  uint32_t at = (uint32_t)((uint64_t)array * 0x9e3779b97f4a7c15u >> 40) % SLOTS;
  for (; slots[at]; at = (at + 1) % SLOTS)
    if (origins[slots[at]].array == array) return slots[at];
  if (origin_count == MAX_ORIGINS) return 0;
  struct origin *o = &origins[origin_count];
  *o = (struct origin){array, ""};
  memcpy(o->name, array, strnlen(array, sizeof o->name - 1));
  slots[at] = (uint16_t)origin_count;
  return origin_count++;
}

static void poison(uint64_t address, uint64_t size, uint32_t origin) {
  if (!has_shadow(address, size)) return;
  memset(VALUES(address), 0xff, size);
  for (uint64_t at = address & ~3ull; at < address + size; at += 4) *ORIGINS(at) = origin;
}

static void unpoison(uint64_t address, uint64_t size) {
  if (has_shadow(address, size)) memset(VALUES(address), 0, size);
}

static bool is_poisoned(uint64_t address, uint64_t size) {
  for (uint64_t i = 0; i < size; i++)
    if (*VALUES(address + i)) return true;
  return false;
}

/* ------------------------------------------------------------------------------------------------------------- life */

/* What the host copied to the device is initialised. */
void uninit_begin_job(void) {
  check_map_shadow(VALUE_SHADOW, SHADOWED);
  check_map_shadow(ORIGIN_SHADOW, SHADOWED);
  memset(slots, 0, sizeof slots);
  origin_count = 1;
}

static void poison_shared(const char *name, uint64_t address, uint64_t size) { poison(address, size, origin_of(name)); }

void uninit_begin_group(void) { object_each_shared(poison_shared); }

void uninit_begin_task(struct tec *tec) {
  memset(contexts[tec->id], 0, sizeof contexts[tec->id]);
  unpoison(stack_low(tec->id), STACK_SIZE);
}

static void report(enum check_kind kind, uint32_t tec, uint64_t pc, uint32_t origin, uint64_t address) {
  if (origin >= origin_count) origin = 0;
  struct check_finding finding = {.kind = kind, .times = 1, .event = -1, .here = {pc, tec, 0}};
  if (address) place_describe(&tecs[tec], address, &finding.place);
  finding.address = address;
  memcpy(finding.origin.name, origins[origin].name, sizeof origins->name);
  finding.origin.memory = finding.origin.name[0] ? MEMORY_NAMED : MEMORY_NONE;
  check_report(&finding);
}

void uninit_end_job(void) {
  for (uint32_t i = 0; i < check_area->region_count && i < MAX_REGIONS; i++) {
    const struct check_region *region = &check_area->regions[i];
    uint64_t end = (uint64_t)region->address + region->size;
    for (uint64_t at = region->address; region->is_output && at < end; at++) {
      if (at % 8 == 0 && at + 8 <= end && *(uint64_t *)VALUES(at) == 0)
        at += 7;
      else if (*VALUES(at)) {
        uint32_t store = *STORES(at);
        report(KIND_UNINIT_STORED, store >> 16, site_pc(store & 0xffff), *ORIGINS(at), at);
        at |= 3; /* the next one that has a note of its own */
      }
    }
  }
}

/* -------------------------------------------------------------------------------------------------------- transfers */

static void note_store(uint64_t address, uint64_t size, uint32_t store) {
  if (is_stack(address)) return;
  for (uint64_t at = address & ~3ull; at < address + size; at += 4) *STORES(at) = store;
}

static void move_values(uint64_t to, uint64_t from, uint64_t size, uint32_t store) {
  if (!has_shadow(to, size) || !has_shadow(from, size)) return;
  note_store(to, size, store);
  if (!is_poisoned(from, size)) {
    unpoison(to, size);
    return;
  }
  memmove(VALUES(to), VALUES(from), size);
  for (uint64_t i = 0; i < size; i++)
    if (*VALUES(to + i)) *ORIGINS(to + i) = *ORIGINS(from + i);
}

void uninit_written(uint64_t address, uint64_t size) {
  if (has_shadow(address, size)) unpoison(address, size);
}

void uninit_check_request(const struct tec *tec, const struct dma_request *request, uint64_t pc) {
  uint64_t at = (uint64_t)request;
  for (uint64_t end = at + sizeof *request; at < end; at += 4)
    if (is_poisoned(at, 4)) report(KIND_UNINIT_USED, tec->id, pc, *ORIGINS(at), 0);
}

void uninit_transfer(const struct tec *tec, const struct dma_request *r, uint64_t pc) {
  uint64_t to = r->dst, from = r->src;
  uint32_t store = STORE(tec->id, site_of(pc));
  if (r->mode == DMA_MEMSET) unpoison(to, r->size);
  for (uint64_t row = 0; r->mode == DMA_DIRECT && r->width && row < r->size / r->width; row++)
    move_values(to + row * r->dst_stride, from + row * r->src_stride, r->width, store);
  for (uint64_t i = 0; r->mode == DMA_TRANSPOSE && i < r->count; i++)
    for (uint64_t j = 0; j < r->width; j++)
      move_values(to + (j * r->dst_stride + i) * r->item, from + (i * r->src_stride + j) * r->item, r->item, store);
  for (uint64_t row = 0; r->mode == DMA_UPSAMPLE && row < r->h_scale; row++)
    for (uint64_t i = 0; i < (uint64_t)r->count * r->w_scale; i++)
      move_values(to + row * r->row_stride + i * r->dst_stride, from + i / r->w_scale * r->src_stride, r->width, store);
}

/* -------------------------------------------------------------------------------------------------- instrumentation */

static struct metadata loaded(uint64_t address, uint64_t size) {
  if (has_shadow(address, size)) return (struct metadata){VALUES(address), ORIGINS(address)};
  return (struct metadata){nothing, (uint32_t *)nothing};
}
static struct metadata stored(uint64_t address, uint64_t size, const void *caller) {
  struct tec *tec = current_tec();
  if (!has_shadow(address, size)) return (struct metadata){anything, (uint32_t *)anything};
  if (tec && !is_stack(address)) note_store(address, size, STORE(tec->id, site_of(check_pc(caller))));
  return (struct metadata){VALUES(address), ORIGINS(address)};
}
#define METADATA(suffix, size, ...)                                                      \
  struct metadata __msan_metadata_ptr_for_load_##suffix(uint64_t address __VA_ARGS__) {  \
    return loaded(address, size);                                                        \
  }                                                                                      \
  struct metadata __msan_metadata_ptr_for_store_##suffix(uint64_t address __VA_ARGS__) { \
    return stored(address, size, __builtin_return_address(0));                           \
  }
METADATA(1, 1)
METADATA(2, 2)
METADATA(4, 4)
METADATA(8, 8)
METADATA(n, size, , uint64_t size)

void *__msan_get_context_state(void) { return contexts[current_tec() ? current_tec()->id : 0]; }

void __msan_poison_alloca(uint64_t address, uint64_t size, const char *name) { poison(address, size, origin_of(name)); }
void __msan_unpoison_alloca(uint64_t address, uint64_t size) { unpoison(address, size); }
void __msan_instrument_asm_store(uint64_t address, uint64_t size) { unpoison(address, size); }

/* Clang's instrumentation has noted the array already; that it may be known here is what the call is for. */
void __compass_declared(void *array) { (void)array; }

void __msan_warning(uint32_t origin) {
  struct tec *tec = current_tec();
  uint64_t pc = check_pc(__builtin_return_address(0));
  if (tec && check_wants(CHECK_UNINIT)) report(KIND_UNINIT_USED, tec->id, pc, origin, 0);
}

uint32_t __msan_chain_origin(uint32_t origin) { return origin; }

void *__msan_memmove(void *to, const void *from, uint64_t size) {
  struct tec *tec = current_tec();
  if (tec && has_shadow((uint64_t)to, size) && has_shadow((uint64_t)from, size))
    move_values((uint64_t)to, (uint64_t)from, size, STORE(tec->id, site_of(check_pc(__builtin_return_address(0)))));
  return memmove(to, from, size);
}
void *__msan_memset(void *to, int value, uint64_t size) {
  unpoison((uint64_t)to, size);
  return memset(to, value, size);
}
