/* Task control blocks: 128 bytes each. X2 links them by address; on X3 they lie one behind the other. */
#include "job.h"

#define TASK 1u
#define X3_TASK 2u
#define WAIT_PREVIOUS 0x10u
#define WAIT_ALL 0x20u
#define GROUP_END 0x40u
#define GRID_END 0x80u
#define READ_WRITE 0x60u
#define SEGMMU_OFF 0x31u
#define GROUP_VALID 0x8000u
#define X2_INTERRUPTS 0x3du
#define X3_INTERRUPTS 0x3eu
#define X3_GRID_INTERRUPTS 9u
#define TEC_DONE 0x100u
#define CORE_DONE 0x200u
#define CLUSTER_DONE 0x400u
#define X3_GROUP_INIT 1u
#define X3_FLUSH_GRID (1u << 22)
#define X3_FLUSH_GROUP (1u << 21)
#define PRINTF_BYTES 1024u

/* Byte offsets of fields; where only one family has a field, its name says so. */
enum {
  FLAG = 0, NEXT = 4, X3_GROUPS = 8, SPC = 12, INTERRUPTS = 16, GROUP_ID = 20, GRID_ID = 22, X2_TASK_ID = 26,
  X3_TASK_ID = 24, X3_WARMUP = 26, GRID_DIM = 28, GROUP_DIM = 34, GROUP_POS = 40, TASK_POS = 46, SP = 52, PP = 56,
  DP = 60, CP = 64, PRINT = 68, PROFILER = 72, TCBP = 108, GLOBAL_PARAM = 112, X3_DEPS = 120, X2_ASID = 48,
  X3_ASID = 88, SEGMMU_CORE0 = 24, SEGMMU_CORE1 = 88
};

static void put32(uint8_t *block, uint32_t offset, uint32_t value) { memcpy(block + offset, &value, 4); }
static void put16(uint8_t *block, uint32_t offset, uint32_t value) {
  uint16_t half = (uint16_t)value;
  memcpy(block + offset, &half, 2);
}
static void put_dims(uint8_t *block, uint32_t offset, uint32_t x, uint32_t y, uint32_t z) {
  put16(block, offset, x);
  put16(block, offset + 2, y);
  put16(block, offset + 4, z);
}

static bool new_run(const struct file *file, uint32_t g) {
  return !g || file->graphs[g].bss != file->graphs[g - 1].bss;
}

uint32_t chain_blocks(const struct file *file) {
  if (file->x3) return 1 + file->graph_count * (file->tasks + 1);
  uint32_t runs = 0;
  for (uint32_t g = 0; g < file->graph_count; g++) runs += new_run(file, g);
  return file->graph_count * file->tasks + runs * (1 + (file->cores + 1) / 2);
}

static uint32_t profiler_of(const struct job *job) {
  const struct tensor *tensor = graph_first_tensor(job->graph, SUB_PROFILER);
  return tensor ? job->base + job->plan.reuses[tensor->section] + tensor->sub->offset : 0;
}

static void put_common(const struct job *job, uint32_t g, uint32_t task, uint32_t at, uint32_t profiler,
                       uint8_t *block) {
  const struct file *file = &job->graph->file;
  const struct subgraph *graph = &file->graphs[g];
  const struct plan *plan = &job->plan;
  uint32_t set = plan->sets[g], data = plan->private_data + plan->set_starts[set];
  put32(block, SPC, job->graph->text + graph->text_offset);
  put_dims(block, GRID_DIM, 1, 1, 1);
  put_dims(block, GROUP_DIM, file->tasks, 1, 1);
  put_dims(block, GROUP_POS, 1, 0, 0);
  put_dims(block, TASK_POS, task, 0, 0);
  put32(block, SP, job->base + plan->stacks + (set * file->tasks + task) * plan->stack);
  put32(block, PP, job->base + plan->params + graph->params_offset);
  put32(block, DP, job->base + data + task * plan->set_data[set]);
  put32(block, CP, job->graph->const_data);
  put32(block, PRINT, graph->printf_size ? job->base + plan->printf + g * PAGE + task * PRINTF_BYTES : 0);
  put32(block, PROFILER, profiler ? profiler + graph->profiler_offset : 0);
  put32(block, TCBP, at);
}

static void put_asids(const struct job *job, uint32_t bss, uint8_t *block, uint32_t offset) {
  uint32_t weights = job->graph->weights[bss][0];
  put32(block, offset, READ_WRITE);
  put32(block, offset + 8, weights ? weights | READ_WRITE : 0);
}

static uint32_t end_bits(const struct file *file, uint32_t g, uint32_t task) {
  if (task != file->tasks - 1) return 0;
  return GROUP_END | (g == file->graph_count - 1 ? GRID_END : 0);
}

static void write_x2(const struct job *job, uint8_t *out) {
  const struct file *file = &job->graph->file;
  uint32_t start = job->base + job->plan.tcbs, segmmus = (file->cores + 1) / 2, profiler = profiler_of(job);
  uint8_t *at = out, *previous = NULL;
  bool single = file->graph_count == 1;
  for (uint32_t g = 0; g < file->graph_count; g++) {
    const struct subgraph *graph = &file->graphs[g];
    if (new_run(file, g)) {
      uint32_t head = start + (uint32_t)(at - out), flags = 2 * segmmus - 1;
      if (previous) put32(previous, NEXT, head);
      put32(at, FLAG, (flags < 3 ? flags : 3) << 16);
      put32(at, NEXT, head + (1 + segmmus) * BLOCK);
      put_asids(job, graph->bss, at, X2_ASID);
      for (uint32_t s = 1; s <= segmmus; s++) {
        put32(at + s * BLOCK, SEGMMU_CORE0, SEGMMU_OFF);
        put32(at + s * BLOCK, SEGMMU_CORE1, SEGMMU_OFF);
      }
      at += (1 + segmmus) * BLOCK;
    }
    for (uint32_t task = 0; task < file->tasks; task++, at += BLOCK) {
      uint32_t address = start + (uint32_t)(at - out), flag = TASK | end_bits(file, g, task);
      bool run_ends = g + 1 == file->graph_count || new_run(file, g + 1), ends = task == file->tasks - 1 && run_ends;
      if (!task && graph->waits > 0) flag |= WAIT_PREVIOUS;
      if (!task && graph->waits < 0 && !single) flag |= WAIT_ALL;
      put_common(job, g, task, address, profiler, at);
      put32(at, FLAG, flag);
      put32(at, NEXT, ends ? 0 : address + BLOCK);
      put32(at, INTERRUPTS, X2_INTERRUPTS | (graph->printf_size ? TEC_DONE : 0) |
                                (flag & GRID_END ? CLUSTER_DONE | (single ? CORE_DONE : 0) : 0));
      put16(at, GROUP_ID, g % file->cores);
      put16(at, X2_TASK_ID, task);
      previous = at;
    }
  }
}

/* Which sub-graphs one waits for on X3: the flag, and up to four numbers. When every sub-graph has its own BSS, "all"
 * means the one before it. */
static uint32_t x3_waits(const struct file *file, uint32_t g, uint16_t deps[4]) {
  const struct subgraph *graph = &file->graphs[g];
  memset(deps, 0, 4 * sizeof *deps);
  if (graph->waits < 0 && !file->own_bss) return WAIT_ALL;
  if (graph->waits < 0) {
    if (g) deps[0] = (uint16_t)(GROUP_VALID | (g - 1));
    return g ? WAIT_PREVIOUS : 0;
  }
  for (int32_t i = 0; i < graph->waits; i++) deps[i] = (uint16_t)(GROUP_VALID | (graph->precursors[i] & 0x7fff));
  return graph->waits ? WAIT_PREVIOUS : 0;
}

static void write_x3(const struct job *job, uint8_t *out) {
  const struct file *file = &job->graph->file;
  uint8_t *at = out + BLOCK;
  uint32_t profiler = profiler_of(job);
  put32(out, FLAG, X3_FLUSH_GRID);
  put32(out, X3_GROUPS, file->graph_count);
  put32(out, INTERRUPTS, X3_GRID_INTERRUPTS);
  put16(out, GRID_ID, job->grid);
  for (uint32_t g = 0; g < file->graph_count; g++) {
    uint16_t deps[4];
    uint32_t waits = x3_waits(file, g, deps);
    put32(at, FLAG, X3_GROUP_INIT | X3_FLUSH_GROUP | waits);
    put16(at, GROUP_ID, g);
    put16(at, GRID_ID, job->grid);
    put_asids(job, file->graphs[g].bss, at, X3_ASID);
    memcpy(at + X3_DEPS, deps, sizeof deps);
    at += BLOCK;
    for (uint32_t task = 0; task < file->tasks; task++, at += BLOCK) {
      put_common(job, g, task, job->base + job->plan.tcbs + (uint32_t)(at - out), profiler, at);
      put32(at, FLAG, X3_TASK | (task ? 0 : waits) | end_bits(file, g, task));
      put32(at, INTERRUPTS, X3_INTERRUPTS);
      put16(at, GROUP_ID, g);
      put16(at, GRID_ID, job->grid);
      put16(at, X3_TASK_ID, task);
      put16(at, X3_WARMUP, file->graphs[g].warmup);
      memcpy(at + X3_DEPS, deps, sizeof deps);
    }
  }
}

void chain_write(const struct job *job, uint8_t *out) {
  memset(out, 0, (size_t)job->plan.block_count * BLOCK);
  (job->graph->file.x3 ? write_x3 : write_x2)(job, out);
}
