/* Graphs and jobs on the device: loaded code and constants, planned and patched memory, control block chains. */
#ifndef RUNTIME_JOB_H
#define RUNTIME_JOB_H

#include "device.h"
#include "file.h"

/* A tensor, and the number of its section through all BSS. */
struct tensor {
  const struct sub_section *sub;
  uint32_t section;
};

struct graph {
  struct file file;
  struct tensor *tensors; /* by type and number */
  uint32_t tensor_count;
  uint32_t base;             /* device address of all that follows; 0: nothing is loaded */
  uint32_t text, const_data; /* device addresses; 0: nothing there */
  uint32_t (*weights)[2];    /* per BSS: its constants, its zero-copy constants */
  uint32_t grids;            /* jobs made so far, for X3 grid numbers */
};

/* Offsets from the start of a job's memory. Arrays over sections count through all BSS. */
struct plan {
  uint32_t params, desc, tcbs, printf, stacks, private_data;
  uint32_t *reuses;   /* per reuse section */
  uint32_t **buffers; /* per sub-graph: its private buffers */
  uint32_t *sets;     /* per sub-graph: which set of stacks and private data it uses */
  uint32_t *set_data; /* per set: bytes of one task's private data */
  uint32_t *set_starts; /* per set: where its private data begin, from `private_data` */
  uint32_t set_count, stack, block_count;
  uint64_t size;
};

struct job {
  struct graph *graph;
  struct device *device;
  uint32_t base;
  struct plan plan;
  uint8_t *chain;  /* the control blocks as they are before a run */
  uint8_t *params; /* the parameter blocks, patched and as rewritten */
  uint16_t grid;
};

/* What the target of a file has. */
struct shape file_shape(const struct file *file);

aipu_status_t graph_load(struct graph *graph, struct device *device);
/* Writes code and constants to the device again, where they were. */
void graph_fill(const struct graph *graph, struct device *device);
void graph_unload(struct graph *graph, struct device *device);

aipu_status_t job_make(struct job *job, struct graph *graph, struct device *device);
void job_free(struct job *job);
/* Writes to the device again what the job needs beside its tensors. */
void job_refill(struct job *job);
/* Replaces the word at byte `offset` of the parameter blocks. */
void job_rewrite(struct job *job, uint32_t offset, uint32_t value);
/* Runs once; `limit` in nanoseconds. */
aipu_status_t job_run(struct job *job, uint64_t limit);

/* The tensor of a type with the number `id`, of several the first in the file; NULL when there is none. */
const struct tensor *graph_tensor(const struct graph *graph, uint32_t type, uint32_t id);
/* That with the lowest number. */
const struct tensor *graph_first_tensor(const struct graph *graph, uint32_t type);
/* How many tensors of a type there are. */
uint32_t graph_tensors(const struct graph *graph, uint32_t type);

/* Number of blocks of the chain of a job. */
uint32_t chain_blocks(const struct file *file);
/* Writes the chain's blocks to `out`; the job is planned and placed. */
void chain_write(const struct job *job, uint8_t *out);

#define BLOCK 128u

#endif
