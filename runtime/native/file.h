/* The content of an aipu.bin, checked: every count, size, offset and reference lies inside the file. */
#ifndef RUNTIME_FILE_H
#define RUNTIME_FILE_H

#include "fail.h"

enum sub_kind { SUB_INPUT = 0, SUB_OUTPUT = 1, SUB_INTER_DUMP = 2, SUB_CONSTANT = 4, SUB_PROFILER = 10,
                SUB_PRINTF = 12, SUB_ZERO_COPY = 15, SUB_OUTPUT_SHAPE = 16 };
enum area { AREA_PARAMS = 0, AREA_DESC = 1, AREA_TEXT = 2, AREAS = 3 };

struct bytes {
  const uint8_t *data;
  uint32_t size;
};

struct sub_section {
  uint32_t offset, size, type, id, data_type;
  float scale;
  int32_t zero_point;
  uint32_t addr_mask;
  struct bytes references; /* 32-bit words: byte offsets into the parameter blocks, continuing into the descriptors */
};

struct section {
  uint32_t source; /* of constants: byte offset in the weights */
  uint32_t size, align;
  struct sub_section *subs;
  uint32_t sub_count;
};

struct bss {
  uint32_t stack_size, stack_align;
  struct section *statics, *reuses;
  uint32_t static_count, reuse_count;
};

struct subgraph {
  uint32_t text_offset, bss, params_offset, printf_size, profiler_offset, private_size, warmup;
  int32_t waits; /* number of precursors; -1: all before */
  uint32_t precursors[4];
  struct section *buffers;
  uint32_t buffer_count;
};

struct remap {
  uint32_t area, offset, target_area, target_offset;
};

struct file {
  void *copy;   /* of the whole file; `bytes` point into it */
  void *blocks; /* everything that was allocated while reading */
  struct bytes text, const_data, params, desc, weights;
  struct bss *bss;
  struct subgraph *graphs;
  struct remap *remaps;
  uint32_t bss_count, graph_count, remap_count;
  bool x3;
  bool own_bss; /* there are several sub-graphs, each with a BSS of its own */
  uint32_t cores, tasks; /* cores of the target, tasks of a sub-graph */
};

/* Reads and checks `size` bytes, of which it keeps a copy. After a failure nothing needs to be freed. */
aipu_status_t file_read(struct file *file, const void *data, uint32_t size);
void file_free(struct file *file);

#endif
