/* A driver for the simulator libraries, as the vendor's one works: it owns device memory in 64-bit physical addresses,
 * loads an aipu.bin into it, writes the task control blocks and talks to the simulator through sim_aipu.h alone. */
#ifndef TEST_DRIVER_H
#define TEST_DRIVER_H

#include "file.h"
#include "sim_aipu.h"
#include "system.h"

int printf(const char *, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void exit(int);
#define CHECK(condition, ...) ((condition) ? (void)0 : (printf(__VA_ARGS__), printf("\n"), exit(1)))

#define PAGE_BYTES 4096u
#define BLOCK_BYTES 128u
#define MOST_BUFFERS 1024

/* Memory with its physical address; the kernel counts addresses from `base`, that of the ASID. */
struct place {
  uint64_t pa, base, size;
  uint8_t *data;
};

struct memory {
  bool x3;
  struct place buffers[MOST_BUFFERS];
  uint32_t count;
  uint64_t next[2]; /* per ASID: where the next buffer goes */
  struct place top; /* X3: all of ASID 0 lies in one buffer */
  uint64_t top_used;
  uint32_t wrong; /* accesses of the simulator to what is in no buffer */
  uint32_t unknown; /* its questions for what is in no buffer */
};

void memory_start(struct memory *memory, bool x3, uint64_t asid0_base, uint64_t top_bytes);
/* X3: from here on ASID 0 is another job's. */
void memory_next_job(struct memory *memory, uint64_t top_bytes);
struct place memory_get(struct memory *memory, int asid, uint64_t size);
/* Takes a buffer of its own back: from here on nothing is there. */
void memory_free(struct memory *memory, struct place place);
mem_interface_t memory_interface(struct memory *memory);

static inline uint32_t relative(struct place area) { return (uint32_t)(area.pa - area.base); }

/* A loaded graph with one job. */
struct graph {
  struct file file;
  struct memory *memory;
  uint16_t grid;
  struct place text, const_data, weights[8], zero_copy[8];
  struct place params, desc, tcbs, private_buffers, reuse, print, stacks, private_data;
  uint32_t sections[64]; /* offsets of reuse sections */
  uint32_t block_count;
  const struct sub_section *inputs[16], *outputs[16];
  uint32_t input_section[16], output_section[16], input_count, output_count;
};

void graph_load(struct graph *graph, struct memory *memory, const char *path, uint64_t asid0_base);
/* Another job of a loaded graph. */
void graph_add_job(struct graph *job, const struct graph *loaded);
void graph_chain(struct graph *graph, uint8_t *blocks);
void read_all(const char *path, void **data, uint32_t *size);

/* What storm.c does: jobs from many threads, on several simulators at once. */
struct storm {
  const sim_aipu_api_t *api;
  const config_t *config;
  const char *path; /* of the aipu.bin: int32 b = a + 1, which faults when a[0] is negative */
  uint32_t contexts, threads, rounds;
};
void storm_run(const struct storm *storm);

#endif
