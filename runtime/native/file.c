#include "file.h"

#include "system.h"

#define MACHINE 0x29a
#define MAX_SECTIONS_BYTES (3ull << 30)
#define MAX_STACK (1u << 28)
#define MAX_ALIGN (1u << 20)

/* A reading position; after the first failure `status` stays, and everything reads as 0. */
struct cursor {
  struct file *file;
  const char *place;
  struct bytes rest;
  uint32_t at;
  aipu_status_t status;
};

static void refuse(struct cursor *c, aipu_status_t status, const char *what, uint32_t value) {
  if (c->status == AIPU_STATUS_SUCCESS)
    c->status = fail(status, "%s, byte %u: %s (%u)", c->place, c->at, what, value);
}

static const uint8_t *take(struct cursor *c, uint32_t size) {
  if (c->status != AIPU_STATUS_SUCCESS) return NULL;
  if (size > c->rest.size - c->at) {
    refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "the content ends too early: more bytes are announced", size);
    return NULL;
  }
  const uint8_t *data = c->rest.data + c->at;
  c->at += size;
  return data;
}

static uint32_t word(struct cursor *c) {
  const uint8_t *data = take(c, 4);
  uint32_t value = 0;
  if (data) memcpy(&value, data, sizeof value);
  return value;
}

/* A list length, if items of `least` bytes can follow that often. */
static uint32_t length(struct cursor *c, uint32_t least) {
  uint32_t value = word(c);
  if (c->status == AIPU_STATUS_SUCCESS && value > (c->rest.size - c->at) / least)
    refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "more items are announced than can follow", value);
  return c->status == AIPU_STATUS_SUCCESS ? value : 0;
}

/* Zeroed memory that lives as long as the file. */
static void *allocate(struct cursor *c, size_t count, size_t size) {
  void **block = calloc(1, sizeof(void *) * 2 + count * size);
  if (!block) {
    refuse(c, AIPU_STATUS_ERROR_BUF_ALLOC_FAIL, "no memory for items", (uint32_t)count);
    return NULL;
  }
  block[0] = c->file->blocks;
  c->file->blocks = block;
  return block + 2;
}

static void check_references(struct cursor *c, const struct sub_section *sub) {
  uint64_t params = c->file->params.size, all = params + c->file->desc.size;
  for (uint32_t i = 0; i < sub->references.size / 4; i++) {
    uint32_t reference;
    memcpy(&reference, sub->references.data + 4 * i, 4);
    if ((uint64_t)reference + 4 > (reference < params ? params : all))
      refuse(c, AIPU_STATUS_ERROR_INVALID_SIZE, "a reference lies outside notes 'rodata' and 'desc'", reference);
  }
}

static void read_subs(struct cursor *c, struct section *section) {
  section->sub_count = length(c, 48);
  section->subs = allocate(c, section->sub_count, sizeof *section->subs);
  for (uint32_t i = 0; section->subs && i < section->sub_count; i++) {
    struct sub_section *sub = &section->subs[i];
    sub->offset = word(c);
    sub->size = word(c);
    sub->type = word(c);
    sub->id = word(c);
    sub->data_type = word(c);
    uint32_t scale = word(c);
    memcpy(&sub->scale, &scale, sizeof scale);
    sub->zero_point = (int32_t)word(c);
    take(c, 12);
    sub->addr_mask = word(c);
    uint32_t references = length(c, 4);
    sub->references = (struct bytes){take(c, 4 * references), 4 * references};
    if (c->status != AIPU_STATUS_SUCCESS) return;
    if ((uint64_t)sub->offset + sub->size > section->size)
      refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "a tensor lies outside its section", sub->offset);
    check_references(c, sub);
  }
}

static void read_static(struct cursor *c, struct section *section) {
  section->source = word(c);
  section->size = word(c);
  section->align = word(c);
  read_subs(c, section);
  if ((uint64_t)section->source + section->size > c->file->weights.size)
    refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "a constant lies outside note 'weight'", section->source);
  if (!section->align || (section->align & (section->align - 1)) || section->align > MAX_ALIGN)
    refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "an alignment is no power of two up to 1 MB", section->align);
}

static void read_reuse(struct cursor *c, struct section *section) {
  section->size = word(c);
  section->align = word(c);
  take(c, 4);
  read_subs(c, section);
}

static void read_features(struct cursor *c) {
  struct file *file = c->file;
  take(c, 8);
  file->bss_count = length(c, 16);
  file->bss = allocate(c, file->bss_count, sizeof *file->bss);
  if (!file->bss_count) refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "there is no BSS", 0);
  for (uint32_t b = 0; c->status == AIPU_STATUS_SUCCESS && b < file->bss_count; b++) {
    struct bss *bss = &file->bss[b];
    bss->stack_size = word(c);
    bss->stack_align = word(c);
    bss->static_count = length(c, 16);
    bss->reuse_count = length(c, 16);
    bss->statics = allocate(c, bss->static_count, sizeof *bss->statics);
    bss->reuses = allocate(c, bss->reuse_count, sizeof *bss->reuses);
    if (bss->stack_size > MAX_STACK || bss->stack_align > MAX_STACK)
      refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "the stack does not fit the device: its size", bss->stack_size);
    if (!bss->stack_size || !bss->stack_align || !bss->reuse_count)
      refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "stack, its alignment and the sections must not be 0: BSS", b);
    for (uint32_t i = 0; c->status == AIPU_STATUS_SUCCESS && i < bss->static_count; i++)
      read_static(c, &bss->statics[i]);
    for (uint32_t i = 0; c->status == AIPU_STATUS_SUCCESS && i < bss->reuse_count; i++)
      read_reuse(c, &bss->reuses[i]);
  }
}

static void check_subgraph(struct cursor *c, const struct subgraph *graph, uint32_t index, uint32_t params_size) {
  const struct file *file = c->file;
  if (graph->text_offset >= file->text.size || graph->bss >= file->bss_count || graph->params_offset % 4 ||
      (uint64_t)graph->params_offset + params_size > file->params.size || !graph->private_size ||
      graph->private_size > MAX_STACK)
    refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "offsets or sizes are outside the file: sub-graph", index);
  for (int32_t i = 0; i < graph->waits; i++)
    if (graph->precursors[i] >= index)
      refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "it waits for one that does not come before: sub-graph", index);
}

/* On X3 what a sub-graph waits for depends on whether sub-graphs share constants. */
static void find_own_bss(struct cursor *c) {
  struct file *file = c->file;
  bool *used = allocate(c, file->bss_count, sizeof *used);
  file->own_bss = used && file->graph_count > 1;
  for (uint32_t g = 0; file->own_bss && g < file->graph_count; g++) {
    file->own_bss = !used[file->graphs[g].bss];
    used[file->graphs[g].bss] = true;
  }
}

static void read_subgraphs(struct cursor *c) {
  struct file *file = c->file;
  file->graph_count = length(c, 64);
  file->graphs = allocate(c, file->graph_count, sizeof *file->graphs);
  for (uint32_t g = 0; c->status == AIPU_STATUS_SUCCESS && g < file->graph_count; g++) {
    struct subgraph *graph = &file->graphs[g];
    take(c, 8);
    graph->text_offset = word(c);
    graph->bss = word(c);
    graph->params_offset = word(c);
    uint32_t params_size = word(c);
    take(c, 8);
    graph->printf_size = word(c);
    graph->profiler_offset = word(c);
    graph->private_size = word(c);
    graph->warmup = word(c);
    take(c, 8);
    graph->waits = (int32_t)word(c);
    if (graph->waits < -1 || graph->waits > (file->x3 ? 4 : 1))
      refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "the number of precursors is not possible", (uint32_t)graph->waits);
    for (int32_t i = 0; c->status == AIPU_STATUS_SUCCESS && i < graph->waits; i++) graph->precursors[i] = word(c);
    graph->buffer_count = length(c, 16);
    graph->buffers = allocate(c, graph->buffer_count, sizeof *graph->buffers);
    for (uint32_t i = 0; c->status == AIPU_STATUS_SUCCESS && i < graph->buffer_count; i++)
      read_reuse(c, &graph->buffers[i]);
    if (c->status == AIPU_STATUS_SUCCESS) check_subgraph(c, graph, g, params_size);
  }
  if (c->status == AIPU_STATUS_SUCCESS) find_own_bss(c);
}

static void read_remaps(struct cursor *c) {
  struct file *file = c->file;
  uint32_t sizes[AREAS] = {file->params.size, file->desc.size, file->text.size};
  file->remap_count = length(c, 16);
  file->remaps = allocate(c, file->remap_count, sizeof *file->remaps);
  for (uint32_t i = 0; c->status == AIPU_STATUS_SUCCESS && i < file->remap_count; i++) {
    struct remap *entry = &file->remaps[i];
    const uint8_t *data = take(c, sizeof *entry);
    if (data) memcpy(entry, data, sizeof *entry);
    if (entry->area >= AREAS || entry->target_area >= AREAS || (uint64_t)entry->offset + 4 > sizes[entry->area] ||
        entry->target_offset > sizes[entry->target_area])
      refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "an entry lies outside the file: entry", i);
  }
}

/* The device word: configuration, ISA (5: X2, 6: X3), architecture and revision. */
static void read_compiler(struct cursor *c) {
  take(c, 8);
  uint32_t device = word(c), flag = word(c), isa = device >> 16 & 15, config = device & 0xffff;
  if ((isa != 5 && isa != 6) || (device >> 20 & 0xff) || config % 10 < 1 || config % 10 > 4)
    refuse(c, AIPU_STATUS_ERROR_TARGET_NOT_FOUND, "the device is no X2 or X3: its word", device);
  if (flag & 1 << 6) refuse(c, AIPU_STATUS_ERROR_OP_NOT_SUPPORTED, "dynamic shapes are not supported: flag", flag);
  c->file->x3 = isa == 6;
  c->file->tasks = config % 10;
}

/* The number behind MP in the first `target:NAME;` of the comment, else 1. */
static uint32_t core_count(struct bytes comment) {
  uint32_t at = 0;
  while (at + 10 < comment.size && memcmp(comment.data + at, "target:", 7) != 0) at++;
  if (at + 10 >= comment.size) return 1;
  for (at += 7; at + 2 < comment.size && comment.data[at] != ';' && comment.data[at]; at++)
    if (comment.data[at] == 'M' && comment.data[at + 1] == 'P') {
      uint32_t cores = comment.data[at + 2] - '0';
      return cores >= 1 && cores <= 9 ? cores : 1;
    }
  return 1;
}

struct note {
  const char *name;
  struct bytes content;
};
enum { COMPILER, PARAMS, DESC, WEIGHTS, FEATURES, REMAP, SUBGRAPHS, GLOBAL_PARAMS, EXTRA_WEIGHTS, NOTES };

static void find_notes(struct cursor *c, struct note *notes) {
  while (c->status == AIPU_STATUS_SUCCESS && c->rest.size - c->at >= 12) {
    uint32_t name_size = word(c), size = word(c);
    take(c, 4);
    const uint8_t *name = take(c, name_size);
    take(c, -name_size & 3);
    const uint8_t *content = take(c, size);
    uint32_t padding = -size & 3;
    take(c, padding < c->rest.size - c->at ? padding : c->rest.size - c->at);
    if (!content || !name_size || name[name_size - 1]) {
      refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "a note has no name", name_size);
      return;
    }
    for (int i = 0; i < NOTES; i++)
      if (strcmp((const char *)name, notes[i].name) == 0 && !notes[i].content.size)
        notes[i].content = (struct bytes){content, size};
  }
}

static void read_note(struct cursor *c, const struct note *note, void (*read)(struct cursor *), bool required) {
  if (c->status != AIPU_STATUS_SUCCESS) return;
  c->place = note->name;
  c->rest = note->content;
  c->at = 0;
  if (note->content.size)
    read(c);
  else if (required)
    refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "the note is missing", 0);
}

static void read_notes(struct cursor *c, struct bytes section) {
  struct note notes[NOTES] = {[COMPILER] = {"compilermsg", {0}}, [PARAMS] = {"rodata", {0}},
                              [DESC] = {"desc", {0}}, [WEIGHTS] = {"weight", {0}}, [FEATURES] = {"fmlist", {0}},
                              [REMAP] = {"remap", {0}}, [SUBGRAPHS] = {"subgraphs", {0}},
                              [GLOBAL_PARAMS] = {"globalparam", {0}}, [EXTRA_WEIGHTS] = {"extra_weight_name", {0}}};
  c->place = ".note.aipu";
  c->rest = section;
  c->at = 0;
  find_notes(c, notes);
  c->file->params = notes[PARAMS].content;
  c->file->desc = notes[DESC].content;
  c->file->weights = notes[WEIGHTS].content;
  for (int i = GLOBAL_PARAMS; i <= EXTRA_WEIGHTS; i++)
    if (notes[i].content.size) refuse(c, AIPU_STATUS_ERROR_OP_NOT_SUPPORTED, notes[i].name, notes[i].content.size);
  read_note(c, &notes[COMPILER], read_compiler, true);
  read_note(c, &notes[FEATURES], read_features, true);
  read_note(c, &notes[SUBGRAPHS], read_subgraphs, true);
  read_note(c, &notes[REMAP], read_remaps, false);
}

/* The sections' headers in the file: fields as 32-bit words. */
enum { SH_NAME = 0, SH_OFFSET = 4, SH_SIZE = 5, SH_WORDS = 10 };

static struct bytes section_content(struct cursor *c, const uint32_t *header) {
  if ((uint64_t)header[SH_OFFSET] + header[SH_SIZE] > c->rest.size) {
    refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "a section reaches past the end of the file", header[SH_OFFSET]);
    return (struct bytes){0};
  }
  return (struct bytes){c->rest.data + header[SH_OFFSET], header[SH_SIZE]};
}

static void read_elf(struct cursor *c) {
  const uint8_t *data = c->rest.data;
  uint16_t half[26];
  if (c->rest.size < 52 || memcmp(data, "\177ELF", 4) != 0) {
    refuse(c, AIPU_STATUS_ERROR_GVERSION_UNSUPPORTED, "not an aipu.bin: no ELF header", c->rest.size);
    return;
  }
  memcpy(half, data, sizeof half);
  uint32_t table, count = half[24], names_index = half[25], header[SH_WORDS];
  memcpy(&table, data + 32, sizeof table);
  if (data[4] != 1 || data[5] != 1 || half[8] != 2 || half[9] != MACHINE || half[10] != 1 || half[23] != 40)
    return refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "an ELF file, but not an aipu.bin: its machine", half[9]);
  if ((uint64_t)table + count * 40ull > c->rest.size || names_index >= count)
    return refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "the section table reaches past the end of the file", table);
  memcpy(header, data + table + 40 * names_index, sizeof header);
  struct bytes names = section_content(c, header), comment = {0}, notes = {0};
  uint32_t names_end = names.size; /* what begins before it has an end */
  while (names_end && names.data[names_end - 1]) names_end--;
  struct { const char *name; struct bytes *content; } wanted[] = {
      {".text", &c->file->text}, {".rodata", &c->file->const_data}, {".comment", &comment}, {".note.aipu", &notes}};
  for (uint32_t i = 0; c->status == AIPU_STATUS_SUCCESS && i < count; i++) {
    memcpy(header, data + table + 40 * i, sizeof header);
    if (header[SH_NAME] >= names_end)
      return refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "a section has no name: section", i);
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
      if (!wanted[k].content->data && strcmp((const char *)names.data + header[SH_NAME], wanted[k].name) == 0)
        *wanted[k].content = section_content(c, header);
  }
  if (!c->file->text.size || !notes.size)
    return refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "there is no '.text' or no '.note.aipu'", count);
  read_notes(c, notes);
  c->file->cores = core_count(comment);
}

/* All sections together must fit the device. */
static void check_total(struct cursor *c) {
  uint64_t total = 0;
  for (uint32_t b = 0; b < c->file->bss_count; b++) {
    for (uint32_t i = 0; i < c->file->bss[b].static_count; i++) total += c->file->bss[b].statics[i].size;
    for (uint32_t i = 0; i < c->file->bss[b].reuse_count; i++) total += c->file->bss[b].reuses[i].size;
  }
  if (total > MAX_SECTIONS_BYTES) refuse(c, AIPU_STATUS_ERROR_INVALID_GBIN, "the sections do not fit the device", 0);
}

aipu_status_t file_read(struct file *file, const void *data, uint32_t size) {
  *file = (struct file){.copy = malloc(size ? size : 1)};
  if (!file->copy) return fail(AIPU_STATUS_ERROR_BUF_ALLOC_FAIL, "no memory for a file of %u bytes", size);
  if (size) memcpy(file->copy, data, size);
  struct cursor c = {.file = file, .place = "file", .rest = {file->copy, size}};
  read_elf(&c);
  if (c.status == AIPU_STATUS_SUCCESS) check_total(&c);
  if (c.status == AIPU_STATUS_SUCCESS && memcmp(file->text.data, "CPSHOST1", file->text.size < 8 ? 1 : 8) != 0)
    refuse(&c, AIPU_STATUS_ERROR_INVALID_GBIN, "'.text' is not host code of this toolchain", 0);
  if (c.status != AIPU_STATUS_SUCCESS) file_free(file);
  return c.status;
}

void file_free(struct file *file) {
  while (file->blocks) {
    void **block = file->blocks;
    file->blocks = block[0];
    free(block);
  }
  free(file->copy);
  *file = (struct file){0};
}
