/* Loading and patching, and the chains of both families, by the rules of the file format. */
#include "driver.h"

#define OVERREAD 0x800u
#define PERMITTED 0x60u

static uint64_t pages_of(uint64_t size) { return (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES; }

static uint32_t get32(struct bytes bytes, uint32_t item) {
  uint32_t value;
  memcpy(&value, bytes.data + 4 * (size_t)item, 4);
  return value;
}

static void put32(uint8_t *to, uint32_t value) { memcpy(to, &value, 4); }
static void put16(uint8_t *to, uint32_t value) { memcpy(to, &(uint16_t){(uint16_t)value}, 2); }
static void put64(uint8_t *to, uint64_t value) { memcpy(to, &value, 8); }

void read_all(const char *path, void **data, uint32_t *size) {
  int file = open(path, O_RDONLY);
  CHECK(file >= 0, "cannot open %s", path);
  *size = (uint32_t)lseek(file, 0, SEEK_END);
  lseek(file, 0, SEEK_SET);
  *data = malloc(*size + 1);
  CHECK(*data && read(file, *data, *size) == (ssize_t)*size, "cannot read %s", path);
  close(file);
}

static struct place filled(struct graph *graph, int asid, struct bytes bytes, uint32_t more) {
  struct place area = memory_get(graph->memory, asid, bytes.size + more);
  if (bytes.size) memcpy(area.data, bytes.data, bytes.size);
  return area;
}

static bool is_zero_copy(const struct section *section) {
  return section->sub_count && section->subs[section->sub_count - 1].type == SUB_ZERO_COPY;
}

/* The offset of a static section among those of its kind; of one behind the last, the size of all. */
static uint32_t constant_offset(const struct bss *bss, uint32_t index, bool zero_copy) {
  uint32_t at = 0;
  for (uint32_t i = 0; i <= index && i < bss->static_count; i++) {
    if (is_zero_copy(&bss->statics[i]) != zero_copy) continue;
    at = (at + bss->statics[i].align - 1) / bss->statics[i].align * bss->statics[i].align;
    if (i < index) at += bss->statics[i].size;
  }
  return at;
}

static void load_constants(struct graph *graph, uint32_t b) {
  const struct bss *bss = &graph->file.bss[b];
  for (int zero_copy = 0; zero_copy < 2; zero_copy++) {
    struct place *area = zero_copy ? &graph->zero_copy[b] : &graph->weights[b];
    *area =
        memory_get(graph->memory, zero_copy ? 0 : 1, constant_offset(bss, bss->static_count, zero_copy) + OVERREAD);
    for (uint32_t i = 0; i < bss->static_count; i++)
      if (is_zero_copy(&bss->statics[i]) == zero_copy)
        memcpy(area->data + constant_offset(bss, i, zero_copy), graph->file.weights.data + bss->statics[i].source,
               bss->statics[i].size);
  }
}

/* Replaces the words that refer to a sub-section, in the parameters and behind them the descriptors. */
static void patch(struct graph *graph, const struct sub_section *sub, uint32_t address) {
  for (uint32_t i = 0; i < sub->references.size / 4; i++) {
    uint32_t at = get32(sub->references, i), params = graph->file.params.size, word;
    uint8_t *place = at < params ? graph->params.data + at : graph->desc.data + (at - params);
    memcpy(&word, place, 4);
    put32(place, (address & sub->addr_mask) | (word & ~sub->addr_mask));
  }
}

static void patch_section(struct graph *graph, const struct section *section, uint32_t address) {
  for (uint32_t i = 0; i < section->sub_count; i++) patch(graph, &section->subs[i], address + section->subs[i].offset);
}

static void note_tensors(struct graph *graph, const struct section *section, uint32_t offset) {
  for (uint32_t i = 0; i < section->sub_count; i++) {
    const struct sub_section *sub = &section->subs[i];
    if (sub->id >= 16) continue;
    if (sub->type == SUB_INPUT)
      graph->inputs[sub->id] = sub, graph->input_section[sub->id] = offset, graph->input_count++;
    if (sub->type == SUB_OUTPUT)
      graph->outputs[sub->id] = sub, graph->output_section[sub->id] = offset, graph->output_count++;
  }
}

static void make_job(struct graph *graph) {
  const struct file *file = &graph->file;
  uint32_t graphs = file->graph_count, tasks = file->tasks, at = 0, own = 0;
  uint64_t most_private = 1;
  for (uint32_t b = 0; b < file->bss_count; b++)
    for (uint32_t s = 0; s < file->bss[b].reuse_count; s++) at += (uint32_t)pages_of(file->bss[b].reuses[s].size);
  for (uint32_t g = 0; g < graphs; g++) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < file->graphs[g].buffer_count; i++) sum += pages_of(file->graphs[g].buffers[i].size);
    most_private = sum > most_private ? sum : most_private;
    own = file->graphs[g].private_size > own ? file->graphs[g].private_size : own;
  }
  graph->params = filled(graph, 0, file->params, 0);
  graph->desc = filled(graph, 0, file->desc, 0);
  graph->block_count =
      file->x3 ? 1 + graphs * (tasks + 1) : graphs * tasks + file->bss_count * (1 + (file->cores + 1) / 2);
  graph->tcbs = memory_get(graph->memory, 0, graph->block_count * BLOCK_BYTES);
  graph->private_buffers = memory_get(graph->memory, 0, most_private);
  graph->reuse = memory_get(graph->memory, 0, at + OVERREAD);
  graph->print = memory_get(graph->memory, 0, graphs * PAGE_BYTES);
  graph->stacks = memory_get(graph->memory, 0, tasks * pages_of(file->bss[0].stack_size));
  graph->private_data = memory_get(graph->memory, 0, tasks * pages_of(own));
}

static void patch_all(struct graph *graph) {
  const struct file *file = &graph->file;
  uint32_t at = 0, number = 0;
  for (uint32_t b = 0; b < file->bss_count; b++) {
    const struct bss *bss = &file->bss[b];
    for (uint32_t s = 0; s < bss->reuse_count; s++, number++) {
      CHECK(number < 64, "too many sections");
      graph->sections[number] = at;
      patch_section(graph, &bss->reuses[s], relative(graph->reuse) + at);
      note_tensors(graph, &bss->reuses[s], at);
      at += (uint32_t)pages_of(bss->reuses[s].size);
    }
    for (uint32_t s = 0; s < bss->static_count; s++) {
      bool zero_copy = is_zero_copy(&bss->statics[s]);
      patch_section(graph, &bss->statics[s],
                    relative(zero_copy ? graph->zero_copy[b] : graph->weights[b]) + constant_offset(bss, s, zero_copy));
    }
  }
  for (uint32_t g = 0; g < file->graph_count; g++)
    for (uint32_t i = 0, offset = 0; i < file->graphs[g].buffer_count; i++) {
      patch_section(graph, &file->graphs[g].buffers[i], relative(graph->private_buffers) + offset);
      offset += (uint32_t)pages_of(file->graphs[g].buffers[i].size);
    }
  const struct place *areas[AREAS] = {&graph->params, &graph->desc, &graph->text};
  for (uint32_t i = 0; i < file->remap_count; i++)
    put32(areas[file->remaps[i].area]->data + file->remaps[i].offset,
          relative(*areas[file->remaps[i].target_area]) + file->remaps[i].target_offset);
}

static void put_task(const struct graph *graph, uint32_t g, uint32_t task, uint32_t at, uint8_t *block) {
  const struct file *file = &graph->file;
  const struct subgraph *sub = &file->graphs[g];
  bool last = task == file->tasks - 1;
  put32(block, (file->x3 ? 2 : 1) | (last ? 0x40 : 0) | (last && g == file->graph_count - 1 ? 0x80 : 0));
  if (!task && sub->waits) put32(block, 0x20 | (file->x3 ? 2 : 1));
  put32(block + 12, relative(graph->text) + sub->text_offset);
  put32(block + 16, file->x3 ? 0x3e : 0x3d);
  put16(block + 20, file->x3 ? g : g % file->cores);
  put16(block + 22, graph->grid);
  put16(block + (file->x3 ? 24 : 26), task);
  put16(block + 28, 1), put16(block + 30, 1), put16(block + 32, 1);
  put16(block + 34, file->tasks), put16(block + 36, 1), put16(block + 38, 1);
  put16(block + 40, 1);
  put16(block + 46, task);
  put32(block + 52, relative(graph->stacks) + task * (uint32_t)pages_of(file->bss[0].stack_size));
  put32(block + 56, relative(graph->params) + sub->params_offset);
  put32(block + 60, relative(graph->private_data));
  put32(block + 64, graph->const_data.data ? relative(graph->const_data) : 0);
  put32(block + 68, sub->printf_size ? relative(graph->print) + g * PAGE_BYTES + task * 1024 : 0);
  put32(block + 108, relative(graph->tcbs) + at);
}

static void chain_x2(const struct graph *graph, uint8_t *blocks) {
  const struct file *file = &graph->file;
  uint32_t segmmus = (file->cores + 1) / 2, head = (uint32_t)graph->tcbs.pa, at = 0, tail = 0;
  for (uint32_t g = 0; g < file->graph_count; g++) {
    if (!g || file->graphs[g].bss != file->graphs[g - 1].bss) {
      if (g) put32(blocks + tail + 4, head + at);
      put32(blocks + at, (segmmus == 1 ? 1u : 3u) << 16);
      put32(blocks + at + 4, head + at + (1 + segmmus) * BLOCK_BYTES);
      put32(blocks + at + 20, (uint32_t)graph->grid << 16);
      put64(blocks + at + 48, graph->tcbs.base | PERMITTED);
      put64(blocks + at + 56, graph->weights[file->graphs[g].bss].base | PERMITTED);
      for (uint32_t s = 1; s <= segmmus; s++) put32(blocks + at + s * BLOCK_BYTES + 24, 0x31);
      at += (1 + segmmus) * BLOCK_BYTES;
    }
    for (uint32_t task = 0; task < file->tasks; task++, at += BLOCK_BYTES) {
      put_task(graph, g, task, at, blocks + at);
      put32(blocks + at + 4, head + at + BLOCK_BYTES);
      tail = at;
    }
  }
  put32(blocks + tail + 4, 0);
}

static void chain_x3(const struct graph *graph, uint8_t *blocks) {
  const struct file *file = &graph->file;
  put32(blocks, 1u << 22);
  put32(blocks + 8, file->graph_count);
  put32(blocks + 16, 9);
  put16(blocks + 22, graph->grid);
  uint32_t at = BLOCK_BYTES;
  for (uint32_t g = 0; g < file->graph_count; g++) {
    put32(blocks + at, 1 | 1u << 21);
    put16(blocks + at + 20, g);
    put16(blocks + at + 22, graph->grid);
    put64(blocks + at + 88, graph->tcbs.base | PERMITTED);
    put64(blocks + at + 96, graph->weights[file->graphs[g].bss].base | PERMITTED);
    at += BLOCK_BYTES;
    for (uint32_t task = 0; task < file->tasks; task++, at += BLOCK_BYTES) put_task(graph, g, task, at, blocks + at);
  }
}

void graph_chain(struct graph *graph, uint8_t *blocks) {
  memset(blocks, 0, graph->block_count * BLOCK_BYTES);
  (graph->file.x3 ? chain_x3 : chain_x2)(graph, blocks);
}

static void load_code(struct graph *graph) {
  graph->text = filled(graph, 0, graph->file.text, 16);
  if (graph->file.const_data.size) graph->const_data = filled(graph, 0, graph->file.const_data, 0);
}

static void finish_job(struct graph *graph) {
  make_job(graph);
  patch_all(graph);
  graph_chain(graph, graph->tcbs.data);
}

void graph_load(struct graph *graph, struct memory *memory, const char *path, uint64_t asid0_base) {
  void *data;
  uint32_t size;
  read_all(path, &data, &size);
  CHECK(file_read(&graph->file, data, size) == AIPU_STATUS_SUCCESS, "%s is refused", path);
  free(data);
  CHECK(graph->file.bss_count <= 8, "too many sections");
  graph->memory = memory;
  memory_start(memory, graph->file.x3, asid0_base, (6u << 20) + size);
  load_code(graph);
  memory_get(memory, 1, 3 * PAGE_BYTES); /* as if another graph had constants */
  for (uint32_t b = 0; b < graph->file.bss_count; b++) load_constants(graph, b);
  finish_job(graph);
}

/* On X3 a job has its code in its own part of memory. */
void graph_add_job(struct graph *job, const struct graph *loaded) {
  *job = *loaded;
  job->input_count = job->output_count = 0;
  if (job->file.x3) {
    memory_next_job(job->memory, (1u << 20) + job->file.text.size);
    load_code(job);
  }
  finish_job(job);
}
