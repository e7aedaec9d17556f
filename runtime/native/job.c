#include "job.h"

#define OVERREAD 0x800u
#define TEXT_OVERREAD 16u
#define TENSOR_BYTES 1073741824u
#define TENSOR_MEMORY "COMPASS_TENSOR_MEMORY"
#define MOST_MEGABYTES 1e9

static int by_type_and_number(const void *one, const void *other) {
  const struct tensor *a = one, *b = other;
  if (a->sub->type != b->sub->type) return a->sub->type < b->sub->type ? -1 : 1;
  if (a->sub->id != b->sub->id) return a->sub->id < b->sub->id ? -1 : 1;
  if (a->section != b->section) return a->section < b->section ? -1 : 1;
  return a->sub < b->sub ? -1 : a->sub > b->sub;
}

static bool index_tensors(struct graph *graph) {
  const struct file *file = &graph->file;
  size_t count = 0;
  for (uint32_t b = 0; b < file->bss_count; b++)
    for (uint32_t s = 0; s < file->bss[b].reuse_count; s++) count += file->bss[b].reuses[s].sub_count;
  graph->tensors = calloc(count + 1, sizeof *graph->tensors);
  if (!graph->tensors) return fail(AIPU_STATUS_ERROR_BUF_ALLOC_FAIL, "no memory for a graph"), false;
  uint32_t section = 0;
  for (uint32_t b = 0; b < file->bss_count; b++)
    for (uint32_t s = 0; s < file->bss[b].reuse_count; s++, section++)
      for (uint32_t i = 0; i < file->bss[b].reuses[s].sub_count; i++)
        graph->tensors[graph->tensor_count++] = (struct tensor){&file->bss[b].reuses[s].subs[i], section};
  qsort(graph->tensors, graph->tensor_count, sizeof *graph->tensors, by_type_and_number);
  return true;
}

/* How many tensors come before those of a type with numbers from `id` on. */
static uint32_t tensors_before(const struct graph *graph, uint32_t type, uint64_t id) {
  uint32_t low = 0, high = graph->tensor_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    const struct sub_section *sub = graph->tensors[middle].sub;
    if (sub->type < type || (sub->type == type && sub->id < id))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

const struct tensor *graph_first_tensor(const struct graph *graph, uint32_t type) {
  uint32_t at = tensors_before(graph, type, 0);
  return at < graph->tensor_count && graph->tensors[at].sub->type == type ? &graph->tensors[at] : NULL;
}

const struct tensor *graph_tensor(const struct graph *graph, uint32_t type, uint32_t id) {
  uint32_t at = tensors_before(graph, type, id);
  const struct tensor *tensor = &graph->tensors[at];
  return at < graph->tensor_count && tensor->sub->type == type && tensor->sub->id == id ? tensor : NULL;
}

uint32_t graph_tensors(const struct graph *graph, uint32_t type) {
  return tensors_before(graph, type, 1ull << 32) - tensors_before(graph, type, 0);
}

#ifndef COMPASS_X2_SHARED_BYTES
#error "COMPASS_X2_SHARED_BYTES and COMPASS_X3_SHARED_BYTES are to say how much shared memory a core has"
#endif
struct shape file_shape(const struct file *file) {
  return (struct shape){file->cores, file->tasks, file->x3 ? COMPASS_X3_SHARED_BYTES : COMPASS_X2_SHARED_BYTES};
}

static bool is_zero_copy(const struct section *section) {
  return section->sub_count && section->subs[section->sub_count - 1].type == SUB_ZERO_COPY;
}

/* Offsets of the constants of one kind in their image, through `place`; returns the image's size. */
static uint64_t constants(const struct bss *bss, bool zero_copy, void (*place)(void *, uint32_t, uint32_t), void *to) {
  uint64_t size = 0;
  for (uint32_t i = 0; i < bss->static_count; i++) {
    if (is_zero_copy(&bss->statics[i]) != zero_copy) continue;
    size = (size + bss->statics[i].align - 1) / bss->statics[i].align * bss->statics[i].align;
    if (place) place(to, i, (uint32_t)size);
    size += bss->statics[i].size;
  }
  return size;
}

struct copying {
  const struct file *file;
  const struct bss *bss;
  uint8_t *image;
};

static void copy_constant(void *to, uint32_t index, uint32_t offset) {
  const struct copying *copying = to;
  const struct section *section = &copying->bss->statics[index];
  if (section->size) memcpy(copying->image + offset, copying->file->weights.data + section->source, section->size);
}

static void put_bytes(const struct device *device, uint32_t address, struct bytes bytes) {
  if (bytes.size) memcpy(device->memory + address, bytes.data, bytes.size);
}

/* The next `size` bytes of a graph's memory, in whole pages; returns where they start. */
static uint32_t take_pages(uint64_t *total, uint64_t size) {
  uint64_t start = *total;
  *total += pages(size);
  return (uint32_t)start;
}

/* Where everything lies from the start of the graph's memory; returns how much that is. */
static uint64_t plan_graph(struct graph *graph) {
  const struct file *file = &graph->file;
  uint64_t total = 0;
  graph->text = take_pages(&total, (uint64_t)file->text.size + TEXT_OVERREAD);
  if (file->const_data.size) graph->const_data = take_pages(&total, file->const_data.size);
  for (uint32_t b = 0; b < file->bss_count; b++)
    for (int kind = 0; kind < 2; kind++) {
      uint64_t size = constants(&file->bss[b], kind, NULL, NULL);
      if (size) graph->weights[b][kind] = take_pages(&total, size + OVERREAD);
    }
  return total;
}

/* Offsets become addresses. What lies nowhere stays 0, for `.text` comes first. */
static void place_graph(struct graph *graph) {
  graph->text += graph->base;
  if (graph->const_data) graph->const_data += graph->base;
  for (uint32_t b = 0; b < graph->file.bss_count; b++)
    for (int kind = 0; kind < 2; kind++)
      if (graph->weights[b][kind]) graph->weights[b][kind] += graph->base;
}

aipu_status_t graph_load(struct graph *graph, struct device *device) {
  graph->weights = calloc(graph->file.bss_count, sizeof *graph->weights);
  if (graph->weights && index_tensors(graph)) graph->base = device_allocate(device, plan_graph(graph));
  if (!graph->base) {
    graph_unload(graph, device);
    return AIPU_STATUS_ERROR_BUF_ALLOC_FAIL;
  }
  place_graph(graph);
  graph_fill(graph, device);
  return AIPU_STATUS_SUCCESS;
}

void graph_fill(const struct graph *graph, struct device *device) {
  const struct file *file = &graph->file;
  put_bytes(device, graph->text, file->text);
  if (graph->const_data) put_bytes(device, graph->const_data, file->const_data);
  for (uint32_t b = 0; b < file->bss_count; b++)
    for (int kind = 0; kind < 2; kind++) {
      struct copying copying = {file, &file->bss[b], device->memory + graph->weights[b][kind]};
      if (graph->weights[b][kind]) constants(&file->bss[b], kind, copy_constant, &copying);
    }
}

void graph_unload(struct graph *graph, struct device *device) {
  device_release(device, graph->base);
  free(graph->weights);
  free(graph->tensors);
  file_free(&graph->file);
  *graph = (struct graph){0};
}

/* The next `size` bytes of a job's memory, in whole pages; returns where they start. */
static uint32_t reserve(struct plan *plan, uint64_t size) {
  uint64_t start = plan->size;
  plan->size += pages(size);
  return (uint32_t)start;
}

/* Stacks and private data: a sub-graph that waits for all before it starts again with the first set. */
static void plan_sets(struct plan *plan, const struct file *file) {
  uint32_t following = 0;
  for (uint32_t g = 0; g < file->graph_count; g++) {
    following = file->graphs[g].waits < 0 ? 0 : following;
    uint32_t bytes = (uint32_t)pages(file->graphs[g].private_size);
    plan->sets[g] = following;
    if (plan->set_data[following] < bytes) plan->set_data[following] = bytes;
    if (++following > plan->set_count) plan->set_count = following;
  }
}

/* Private buffers share their memory where a sub-graph waits for all before it. Returns the bytes of all. */
static uint64_t plan_buffers(struct plan *plan, const struct file *file) {
  uint64_t at = 0, most = 0;
  for (uint32_t g = 0; g < file->graph_count; g++) {
    const struct subgraph *graph = &file->graphs[g];
    at = graph->waits < 0 ? 0 : at;
    for (uint32_t i = 0; i < graph->buffer_count; i++) {
      plan->buffers[g][i] = (uint32_t)at;
      at += pages(graph->buffers[i].size);
    }
    most = at > most ? at : most;
  }
  return most;
}

static bool plan_arrays(struct plan *plan, const struct file *file) {
  uint32_t sections = 0, graphs = file->graph_count + 1;
  for (uint32_t b = 0; b < file->bss_count; b++) sections += file->bss[b].reuse_count;
  plan->reuses = calloc(sections + 1, sizeof *plan->reuses);
  plan->sets = calloc(graphs, sizeof *plan->sets);
  plan->set_data = calloc(graphs, sizeof *plan->set_data);
  plan->set_starts = calloc(graphs, sizeof *plan->set_starts);
  plan->buffers = calloc(graphs, sizeof *plan->buffers);
  bool complete = plan->reuses && plan->sets && plan->set_data && plan->set_starts && plan->buffers;
  for (uint32_t g = 0; complete && g < file->graph_count; g++)
    complete = (plan->buffers[g] = calloc(file->graphs[g].buffer_count + 1, sizeof **plan->buffers)) != NULL;
  return complete;
}

/* The driver's order of buffers, each in whole pages. */
static void plan_all(struct plan *plan, const struct file *file) {
  const struct bss *first = &file->bss[0];
  uint64_t data = 0, stack = (uint64_t)first->stack_size + first->stack_align - 1;
  plan->stack = (uint32_t)pages(stack / first->stack_align * first->stack_align);
  plan_sets(plan, file);
  plan->block_count = chain_blocks(file);
  plan->params = reserve(plan, file->params.size);
  plan->desc = reserve(plan, file->desc.size);
  plan->tcbs = reserve(plan, (uint64_t)plan->block_count * BLOCK);
  uint32_t buffers = reserve(plan, plan_buffers(plan, file));
  for (uint32_t g = 0; g < file->graph_count; g++)
    for (uint32_t i = 0; i < file->graphs[g].buffer_count; i++) plan->buffers[g][i] += buffers;
  uint32_t number = 0;
  for (uint32_t b = 0; b < file->bss_count; b++)
    for (uint32_t s = 0; s < file->bss[b].reuse_count; s++)
      plan->reuses[number++] = reserve(plan, file->bss[b].reuses[s].size);
  reserve(plan, OVERREAD);
  plan->printf = reserve(plan, (uint64_t)file->graph_count * PAGE);
  plan->stacks = reserve(plan, (uint64_t)plan->set_count * file->tasks * plan->stack);
  for (uint32_t s = 0; s < plan->set_count; s++) {
    plan->set_starts[s] = (uint32_t)data;
    data += (uint64_t)plan->set_data[s] * file->tasks;
  }
  plan->private_data = reserve(plan, data);
}

/* Writes a section's addresses into the words that refer to it. */
static void patch(const struct job *job, const struct section *section, uint32_t start) {
  const struct file *file = &job->graph->file;
  for (uint32_t i = 0; i < section->sub_count; i++) {
    const struct sub_section *sub = &section->subs[i];
    uint32_t address = start + sub->offset;
    for (uint32_t r = 0; r < sub->references.size / 4; r++) {
      uint32_t reference, word;
      memcpy(&reference, sub->references.data + 4 * r, 4);
      bool in_params = reference < file->params.size;
      uint32_t offset = in_params ? job->plan.params + reference : job->plan.desc + reference - file->params.size;
      uint8_t *at = job->device->memory + job->base + offset;
      memcpy(&word, at, 4);
      word = (address & sub->addr_mask) | (word & ~sub->addr_mask);
      memcpy(at, &word, 4);
    }
  }
}

struct patching {
  const struct job *job;
  const struct bss *bss;
  uint32_t start;
};

static void patch_constant(void *to, uint32_t index, uint32_t offset) {
  const struct patching *patching = to;
  patch(patching->job, &patching->bss->statics[index], patching->start + offset);
}

static void patch_all(const struct job *job) {
  const struct file *file = &job->graph->file;
  uint32_t number = 0;
  for (uint32_t b = 0; b < file->bss_count; b++) {
    for (uint32_t s = 0; s < file->bss[b].reuse_count; s++)
      patch(job, &file->bss[b].reuses[s], job->base + job->plan.reuses[number++]);
    for (int kind = 0; kind < 2; kind++) {
      struct patching patching = {job, &file->bss[b], job->graph->weights[b][kind]};
      constants(&file->bss[b], kind, patch_constant, &patching);
    }
  }
  for (uint32_t g = 0; g < file->graph_count; g++)
    for (uint32_t i = 0; i < file->graphs[g].buffer_count; i++)
      patch(job, &file->graphs[g].buffers[i], job->base + job->plan.buffers[g][i]);
  uint32_t starts[AREAS] = {job->base + job->plan.params, job->base + job->plan.desc, job->graph->text};
  for (uint32_t i = 0; i < file->remap_count; i++) {
    const struct remap *entry = &file->remaps[i];
    uint32_t word = starts[entry->target_area] + entry->target_offset;
    memcpy(job->device->memory + starts[entry->area] + entry->offset, &word, 4);
  }
}

/* Tensors whose size the file does not know cannot be run: nothing here could tell it. */
static aipu_status_t check_sizes(const struct graph *graph) {
  static const uint32_t types[] = {SUB_INPUT, SUB_OUTPUT};
  for (int t = 0; t < 2; t++)
    for (uint32_t i = 0, count = graph_tensors(graph, types[t]); i < count; i++) {
      const struct tensor *tensor = graph_tensor(graph, types[t], i);
      if (!tensor) return fail(AIPU_STATUS_ERROR_INVALID_GBIN, "there is no %s %u", t ? "output" : "input", i);
      if (!tensor->sub->size)
        return fail(AIPU_STATUS_ERROR_ZERO_TENSOR_SIZE, "the size of %s %u is not in the file: build it with --shape",
                    t ? "output" : "input", i);
    }
  return AIPU_STATUS_SUCCESS;
}

/* How many bytes the tensors of a file may take together; COMPASS_TENSOR_MEMORY says it in megabytes. */
static uint64_t tensor_limit(void) {
  const char *text = getenv(TENSOR_MEMORY);
  if (!text || !*text) return TENSOR_BYTES;
  char *end;
  double megabytes = strtod(text, &end);
  return !*end && megabytes >= 0 && megabytes < MOST_MEGABYTES ? (uint64_t)megabytes << 20 : TENSOR_BYTES;
}

/* A file, whatever its own size, does not ask for more memory than files may. */
static aipu_status_t check_memory(const struct file *file) {
  uint64_t size = 0, limit = tensor_limit();
  for (uint32_t b = 0; b < file->bss_count; b++)
    for (uint32_t s = 0; s < file->bss[b].reuse_count; s++) size += file->bss[b].reuses[s].size;
  if (size > limit)
    return fail(AIPU_STATUS_ERROR_BUF_ALLOC_FAIL, "the tensors of the file take %llu bytes, more than " TENSOR_MEMORY
                " allows (%llu)", (unsigned long long)size, (unsigned long long)limit);
  return AIPU_STATUS_SUCCESS;
}

/* Descriptors, and what refers to addresses. */
static void job_fill(struct job *job) {
  const struct file *file = &job->graph->file;
  put_bytes(job->device, job->base + job->plan.desc, file->desc);
  patch_all(job);
}

aipu_status_t job_make(struct job *job, struct graph *graph, struct device *device) {
  *job = (struct job){.graph = graph, .device = device, .grid = (uint16_t)(graph->grids++ % 0xffff + 1)};
  const struct file *file = &graph->file;
  aipu_status_t status = check_sizes(graph);
  if (status == AIPU_STATUS_SUCCESS) status = check_memory(file);
  if (status != AIPU_STATUS_SUCCESS) return status;
  bool complete = plan_arrays(&job->plan, file);
  if (complete) {
    plan_all(&job->plan, file);
    job->chain = malloc((size_t)job->plan.block_count * BLOCK);
    job->params = malloc((size_t)file->params.size + 1);
    complete = job->chain && job->params && (job->base = device_allocate(device, job->plan.size)) != 0;
  }
  if (!complete) {
    job_free(job);
    return AIPU_STATUS_ERROR_BUF_ALLOC_FAIL;
  }
  put_bytes(device, job->base + job->plan.params, file->params);
  job_fill(job);
  memcpy(job->params, device->memory + job->base + job->plan.params, file->params.size);
  chain_write(job, job->chain);
  return AIPU_STATUS_SUCCESS;
}

void job_refill(struct job *job) {
  job_fill(job);
  memcpy(job->device->memory + job->base + job->plan.params, job->params, job->graph->file.params.size);
}

void job_rewrite(struct job *job, uint32_t offset, uint32_t value) {
  memcpy(job->params + offset, &value, sizeof value);
  memcpy(job->device->memory + job->base + job->plan.params + offset, &value, sizeof value);
}

void job_free(struct job *job) {
  device_release(job->device, job->base);
  for (uint32_t g = 0; job->plan.buffers && g < job->graph->file.graph_count; g++) free(job->plan.buffers[g]);
  free(job->plan.buffers);
  free(job->plan.reuses);
  free(job->plan.sets);
  free(job->plan.set_data);
  free(job->plan.set_starts);
  free(job->chain);
  free(job->params);
  *job = (struct job){.device = job->device};
}

aipu_status_t job_run(struct job *job, uint64_t limit) {
  uint32_t head = job->base + job->plan.tcbs;
  if (!job->graph->file.graph_count) return AIPU_STATUS_SUCCESS;
  memcpy(job->device->memory + head, job->chain, (size_t)job->plan.block_count * BLOCK);
  const struct chain chain = {.head = head, .count = job->plan.block_count, .x3 = job->graph->file.x3, .limit = limit,
                              .shape = file_shape(&job->graph->file)};
  struct report report;
  aipu_status_t status = device_run(job->device, &chain, &report);
  write_all(1, report.printed, report.printed_size);
  status = fail_in_kernel(status, &report, job->graph->file.text.data, job->graph->file.text.size);
  report_free(&report);
  return status;
}
