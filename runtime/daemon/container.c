#include "container.h"

/* A reading position in a part of the file; after the first failure everything reads as 0. */
struct cursor {
  const uint8_t *data; /* the whole file */
  size_t at, end;
  bool failed;
};

struct notes {
  struct cursor features, graphs, weights, kernel;
};

static const struct element_type TYPES[] = {
    {"bool", 1, 'u'},         {"uint8", 1, 'u'},         {"int8", 1, 'i'},         {"uint16", 2, 'u'},
    {"int16", 2, 'i'},        {"uint32", 4, 'u'},        {"int32", 4, 'i'},        {"uint64", 8, 'u'},
    {"int64", 8, 'i'},        {"float16", 2, 'f'},       {"float32", 4, 'f'},      {"float64", 8, 'f'},
    {"bfloat16", 2, 'g'},     {"aligned_uint4", 1, 'u'}, {"aligned_int4", 1, 'i'}, {"aligned_uint12", 2, 'u'},
    {"aligned_int12", 2, 'i'}};

const struct element_type *element_type(const char *name, size_t size) {
  if (size == 4 && !memcmp(name, "void", 4)) return &TYPES[1];
  size_t base = size;
  while (base && name[base - 1] >= '0' && name[base - 1] <= '9') base--;
  if (base > 1 && base < size && name[base - 1] == 'x') size = base - 1; /* a vector: its elements */
  for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
    if (strlen(TYPES[i].name) == size && !memcmp(TYPES[i].name, name, size)) return &TYPES[i];
  return NULL;
}

static size_t take(struct cursor *c, size_t size) {
  if (c->failed || size > c->end - c->at) return c->failed = true, 0;
  c->at += size;
  return c->at - size;
}

static uint32_t word(struct cursor *c) {
  uint32_t value = 0;
  size_t at = take(c, 4);
  if (!c->failed) memcpy(&value, c->data + at, 4);
  return value;
}

static struct cursor part(struct cursor *c, size_t at, size_t size) {
  if (at > c->end || size > c->end - at) c->failed = true;
  return c->failed ? (struct cursor){.failed = true} : (struct cursor){c->data, at, at + size, false};
}

static void find_notes(struct cursor *c, struct notes *notes) {
  struct {
    const char *name;
    struct cursor *found;
  } wanted[] = {{"fmlist", &notes->features},
                {"subgraphs", &notes->graphs},
                {"weight", &notes->weights},
                {"compassc", &notes->kernel}};
  while (!c->failed && c->end - c->at >= 12) {
    uint32_t name_size = word(c), size = word(c);
    take(c, 4);
    size_t name = take(c, name_size);
    take(c, -name_size & 3);
    size_t content = take(c, size);
    if (c->failed || !name_size || c->data[name + name_size - 1]) break;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
      if (!strcmp((const char *)c->data + name, wanted[i].name) && !wanted[i].found->end)
        *wanted[i].found = (struct cursor){c->data, content, content + size, false};
    size_t padding = -size & 3;
    take(c, padding < c->end - c->at ? padding : c->end - c->at);
  }
}

/* Finds the notes in the section `.note.aipu`. */
static bool read_elf(const uint8_t *data, uint32_t size, struct notes *notes) {
  struct cursor file = {data, 0, size, false};
  uint16_t half[26];
  uint32_t table, header[10], names[10];
  if (size < 52 || memcmp(data, "\177ELF\1\1", 6) != 0) return false;
  memcpy(half, data, sizeof half);
  memcpy(&table, data + 32, 4);
  uint32_t count = half[24], index = half[25];
  if (half[9] != 0x29a || half[23] != 40 || (uint64_t)table + count * 40ull > size || index >= count) return false;
  memcpy(names, data + table + 40 * index, sizeof names);
  struct cursor texts = part(&file, names[4], names[5]);
  for (uint32_t i = 0; !texts.failed && i < count; i++) {
    memcpy(header, data + table + 40 * i, sizeof header);
    if (header[0] >= names[5] || names[5] - header[0] < 11 ||
        memcmp(data + names[4] + header[0], ".note.aipu", 11) != 0)
      continue;
    struct cursor section = part(&file, header[4], header[5]);
    find_notes(&section, notes);
    return !file.failed && notes->features.end && notes->graphs.end;
  }
  return false;
}

static bool read_parameter(const struct json *given, uint32_t at, uint32_t base, struct parameter *out) {
  static const struct {
    const char *name;
    enum role role;
  } roles[] = {{"input", ROLE_INPUT},
               {"output", ROLE_OUTPUT},
               {"const", ROLE_CONSTANT},
               {"descriptor", ROLE_DESCRIPTOR},
               {"attr", ROLE_SCALAR}};
  const struct json *name = json_find(given, "name"), *role = json_find(given, "role"),
                    *type = json_find(given, "dtype"), *index = json_find(given, "index");
  if (!name || name->kind != JSON_TEXT || name->size > 200 || !type || type->kind != JSON_TEXT) return false;
  memcpy(out->name, name->text, name->size);
  out->word = base + 4 * at;
  out->type = element_type(type->text, type->size);
  out->index = index && index->kind == JSON_INTEGER && index->integer >= 0 && index->integer < MOST_PARAMETERS
                   ? (uint32_t)index->integer
                   : 0;
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    if (json_is(role, roles[i].name)) return out->role = roles[i].role, out->type != NULL;
  return false;
}

/* The parameters of a kernel, from the note that its builder wrote. */
static bool read_kernel(struct container *container, const struct cursor *note, uint32_t base) {
  size_t size = note->end - note->at;
  char *copy = malloc(size + 1);
  if (!copy) return false;
  memcpy(copy, note->data + note->at, size);
  while (size && !copy[size - 1]) size--;
  struct json *about = json_parse(copy, size);
  const struct json *name = json_find(about, "kernel"), *list = json_find(about, "params");
  bool good = name && name->kind == JSON_TEXT && name->size <= 200 && list && list->kind == JSON_LIST &&
              list->size <= MOST_PARAMETERS;
  if (good) {
    memcpy(container->kernel, name->text, name->size);
    for (const struct json *item = list->first; good && item; item = item->next, container->count++)
      good = read_parameter(item, container->count, base, &container->parameters[container->count]);
  }
  container->is_kernel = true;
  free(about);
  free(copy);
  return good;
}

static struct parameter *tensor(struct container *container, enum role role, uint32_t id) {
  for (uint32_t i = 0; i < container->count; i++)
    if (container->parameters[i].role == role && container->parameters[i].index == id) return &container->parameters[i];
  if (container->is_kernel || container->count == MOST_PARAMETERS || id >= MOST_PARAMETERS) return NULL;
  struct parameter *made = &container->parameters[container->count++];
  snprintf(made->name, sizeof made->name, "%s%u", role == ROLE_INPUT ? "input" : "output", id);
  made->role = role;
  made->index = id;
  made->type = &TYPES[1];
  return made;
}

/* The constant whose address goes to a word of the parameter blocks. */
static void note_constant(struct container *container, struct cursor references, uint32_t count, size_t source,
                          uint32_t size) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t reference = word(&references);
    for (uint32_t k = 0; k < container->count; k++) {
      struct parameter *found = &container->parameters[k];
      if (found->role != ROLE_CONSTANT || found->word != reference) continue;
      found->source = source;
      found->nbytes = size;
    }
  }
}

/* Reads a section, of constants (`weights` given) or of a job's memory. */
static void read_section(struct container *container, struct cursor *c, const struct cursor *weights) {
  uint32_t source = weights ? word(c) : 0;
  size_t section_at = c->at;
  uint32_t section_size = word(c);
  take(c, weights ? 4 : 8);
  uint32_t count = word(c);
  if (weights && (source > weights->end - weights->at || section_size > weights->end - weights->at - source))
    c->failed = true;
  for (uint32_t i = 0; !c->failed && i < count; i++) {
    take(c, 4);
    size_t size_at = c->at;
    uint32_t size = word(c), kind = word(c), id = word(c);
    take(c, 28);
    uint32_t references = word(c);
    struct cursor there = *c;
    take(c, references > (c->end - c->at) / 4 ? c->end - c->at + 1 : 4 * (size_t)references);
    if (c->failed) return;
    if (weights) note_constant(container, there, references, weights->at + source, section_size);
    struct parameter *found =
        !weights && kind <= 1 ? tensor(container, kind == 0 ? ROLE_INPUT : ROLE_OUTPUT, id) : NULL;
    if (!found && !weights && kind <= 1 && !container->is_kernel) c->failed = true; /* more than are known here */
    if (!found || found->size_at) continue;
    found->nbytes = size;
    found->size_at = size_at;
    found->section_at = section_at;
  }
}

static bool read_features(struct container *container, struct cursor *c, const struct cursor *weights) {
  take(c, 8);
  uint32_t bss = word(c);
  for (uint32_t b = 0; !c->failed && b < bss; b++) {
    take(c, 8);
    uint32_t statics = word(c), reuses = word(c);
    for (uint32_t i = 0; !c->failed && i < statics; i++) read_section(container, c, weights);
    for (uint32_t i = 0; !c->failed && i < reuses; i++) read_section(container, c, NULL);
  }
  return !c->failed;
}

static int by_place(const void *a, const void *b) {
  const struct parameter *one = a, *other = b;
  if (one->role != other->role) return one->role < other->role ? -1 : 1;
  return one->index < other->index ? -1 : one->index > other->index;
}

bool container_read(struct container *container, uint8_t *data, uint32_t size, struct failure *failure) {
  struct notes notes = {0};
  *container = (struct container){.data = data, .size = size};
  if (!read_elf(data, size, &notes)) return wrong(failure, "invalid-gbin", "the file is no aipu.bin that can be read");
  container->parameters = calloc(MOST_PARAMETERS, sizeof *container->parameters);
  if (!container->parameters) return wrong(failure, "buf-alloc-fail", "there is no memory for the program");
  struct cursor first = notes.graphs;
  take(&first, 20);
  uint32_t base = word(&first);
  bool good = !notes.kernel.end || read_kernel(container, &notes.kernel, base);
  good = good && read_features(container, &notes.features, &notes.weights);
  for (uint32_t i = 0; good && i < container->count; i++)
    good = container->parameters[i].role > ROLE_OUTPUT || container->parameters[i].size_at;
  if (!container->is_kernel && container->count)
    qsort(container->parameters, container->count, sizeof *container->parameters, by_place);
  if (good) return true;
  free(container->parameters);
  return wrong(failure, "invalid-gbin", "the notes of the file are damaged");
}

void container_free(struct container *container) {
  free(container->parameters);
  free(container->data);
}

uint8_t *container_sized(const struct container *container, const uint64_t *sizes) {
  uint8_t *copy = malloc(container->size);
  if (!copy) return NULL;
  memcpy(copy, container->data, container->size);
  for (uint32_t i = 0; i < container->count; i++) {
    const struct parameter *p = &container->parameters[i];
    if (p->role > ROLE_OUTPUT || p->nbytes || !sizes[i]) continue;
    uint32_t size = (uint32_t)sizes[i], section = (size + ROOM + 4095) / 4096 * 4096;
    memcpy(copy + p->size_at, &size, 4);
    memcpy(copy + p->section_at, &section, 4);
  }
  return copy;
}
