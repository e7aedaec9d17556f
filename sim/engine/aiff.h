/* A functional model of the AIFF, the fixed-function unit. The engine runs it inside of the worker, PySim calls it as a
 * library: it knows device memory as ranges, and touches nothing else.
 *
 *   aiff_chain.c    the walk over descriptors; what each node of the chain is to do
 *   aiff_rules.c    the registers of a node, and the rules of their fields (aiff_tables.h, which is generated)
 *   aiff_units.c    pooling, convolution, post-processing, output
 *   aiff_weights.c  packed weights
 *
 * A start is refused before anything is written, where its registers ask for what the model does not know. What depends
 * on data (a result that int8 does not hold) is found while it runs. */
#ifndef ENGINE_AIFF_H
#define ENGINE_AIFF_H

#include "aiff_names.h"
#include "libc.h"

enum { AIFF_X2 = 0, AIFF_X3 = 1 };
enum { AIFF_BLOCK = 32, AIFF_SURFACE = 32 }; /* bytes: of a block of eight words; of a pixel in a surface */

/* Device memory: no two ranges meet. */
struct aiff_range {
  uint64_t address, size;
  uint8_t *host;
};
struct aiff_memory {
  const struct aiff_range *ranges;
  uint64_t count;
};

/* The host's address of device memory that lies in one range; NULL where it does not. */
uint8_t *aiff_reach(const struct aiff_memory *memory, uint64_t address, uint64_t size);

/* Memory that is read or written: `times` groups, `step` bytes apart, of `count` rows of `width` bytes, `stride` apart.
 * `name`: of the register with its address. */
struct aiff_area {
  uint64_t first, stride, step, width;
  uint32_t count, times;
  bool writes;
  const char *name;
};

/* The address behind an area's last byte. */
static inline uint64_t aiff_end(const struct aiff_area *area) {
  return area->first + (area->times - 1) * area->step + (area->count - 1) * area->stride + area->width;
}

/* An image in memory. Planes: surfaces of 32 bytes a pixel, `line` from row to row, `surface` from surface to surface.
 * NHWC: `line` from pixel to pixel, `surface` from row to row. */
struct aiff_image {
  uint64_t address, line, surface;
  uint32_t width, height, channels, item; /* `item`: bytes of an element */
  bool is_nhwc;
};

enum aiff_input { INPUT_PASSES, INPUT_CONVOLVED };

/* What one MTP and its ITP do. */
struct aiff_stream {
  uint32_t unit;
  enum aiff_input kind;
  struct aiff_image input, output;
  uint64_t weights, weight_bytes, biases, table;
  uint32_t format; /* bits of a code of packed weights; 0: they are not packed */
  bool has_m0, has_relu, has_e, has_table;
  int64_t m0_factor, e_factor;
  uint32_t m0_shift, table_shift;
};

struct aiff_pool {
  struct aiff_image input, output;
  uint32_t kernel_w, kernel_h, stride_w, stride_h;
  bool is_signed;
};

/* One execution of a node of the chain. */
struct aiff_execution {
  uint32_t node;
  bool pools;
  struct aiff_pool pool;
  struct aiff_stream streams[2];
};

/* What a start is to do. `assumed`: bits of enum aiff_assumption that it may make use of, `used`: those that it did. */
struct aiff_plan {
  struct aiff_memory memory;
  uint32_t assumed, used;
  struct aiff_execution *executions;
  uint32_t count, room;
  char *message; /* why it is refused */
  size_t message_size;
};

/* Reads the descriptors at three device addresses. False, with a message, where the start is refused. */
bool aiff_prepare(struct aiff_plan *plan, uint32_t generation, uint32_t control, uint32_t parameters,
                  uint32_t activations);

/* Does it. False, with a message, where the data ask for what is not modelled. */
bool aiff_execute(struct aiff_plan *plan);

/* Calls `visit` with each area that is touched, descriptors apart, until it is false. */
typedef bool aiff_visitor(void *context, const struct aiff_area *area);
bool aiff_visit(const struct aiff_plan *plan, aiff_visitor *visit, void *context);

/* The names of assumptions, separated by commas. */
void aiff_assumption_names(uint32_t bits, char *text, size_t size);

/* Frees what aiff_prepare made. */
void aiff_release(struct aiff_plan *plan);

/* The model as a library (compass_sim/aiff.py calls it): one start on memory that is given as ranges, `chains` being the
 * addresses of control, parameters and activations. With `visit` it is not done: the areas that it touches are told. 1 when
 * that is possible, with the assumptions it made use of in `message`; 0 when it is refused, with the reason. */
__attribute__((visibility("default"))) int compass_aiff(const struct aiff_range *ranges, uint64_t count,
                                                        uint32_t generation, uint32_t assumed, aiff_visitor *visit,
                                                        const uint32_t *chains, char *message, uint64_t size);

/* ---------------------------------------------------------------------------------------------- between its own files */

struct aiff_rule {
  const char *name; /* `mtp[].ctrl.op_mode` */
  uint16_t address; /* of sub-unit 0 */
  uint8_t low, bits, or_default;
  uint32_t standard, values; /* the default; bits of the values that are allowed */
  struct aiff_trust {
    uint32_t assumption, values; /* bits of those that an assumption allows besides */
  } assumed[2];
};
struct aiff_group {
  uint8_t known; /* in this generation */
  uint16_t first, count, stride;
};
struct aiff_register {
  uint16_t address;
  uint32_t standard;
};
struct aiff_place {
  uint16_t address, stride;
  uint8_t low, bits;
};
struct aiff_word {
  uint8_t of_parameters;
  uint16_t word, step;
};
struct aiff_generation {
  const struct aiff_rule *rules;
  const struct aiff_group *groups;
  const struct aiff_register *registers;
  uint64_t register_count;
  const struct aiff_place *places;
  const struct aiff_word *words;
  uint32_t parameter_words, activation_words;
};

enum { AIFF_ADDRESSES = 0x800, MOST_PARAMETERS = 88, MOST_ACTIVATIONS = 72 };

/* A node of the chain: its registers, and the descriptors of one execution. */
struct aiff_node {
  const struct aiff_generation *generation;
  struct aiff_plan *plan;
  uint32_t number;
  uint32_t registers[AIFF_ADDRESSES];
  uint32_t parameters[MOST_PARAMETERS], activations[MOST_ACTIVATIONS];
};

/* Writes why the start is refused; always false. */
bool aiff_refuse(struct aiff_plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));

const struct aiff_generation *aiff_generation_of(uint32_t generation);

/* Notes the use of an assumption; false where it may not be made. */
bool aiff_assume(struct aiff_plan *plan, uint32_t assumption);

/* Every register has its default, but those that the items of a control descriptor name. */
bool aiff_read_registers(struct aiff_node *node, const uint32_t *words, uint32_t count);

/* The execution that the registers and descriptors of a node ask for. */
bool aiff_decode(struct aiff_node *node, struct aiff_execution *execution);

/* Unpacks `count` weights from codes of `bits` bits (0: bytes), in the order of the stream. False where it ends before,
 * or holds what is no weight of eight bits. */
bool aiff_unpack(const uint8_t *stream, uint64_t bytes, uint32_t bits, int8_t *weights, uint64_t count);

#endif
