#include "aiff.h"

/* The first element of a pixel's channel `c`, which begins a surface in planes. */
static uint8_t *pixel(const struct aiff_plan *plan, const struct aiff_image *image, uint32_t y, uint32_t x, uint32_t c) {
  uint64_t at = image->address + (image->is_nhwc ? y * image->surface + x * image->line + (uint64_t)c * image->item
                                                 : c * image->item / AIFF_SURFACE * image->surface + y * image->line +
                                                       (uint64_t)x * AIFF_SURFACE);
  return aiff_reach(&plan->memory, at, 1);
}

/* ---------------------------------------------------------------------------------------------------------------- pool */

#define LARGEST(T, name)                                                      \
  static void name(uint8_t *into, const uint8_t *from, uint32_t channels) {   \
    T a[AIFF_SURFACE / sizeof(T)], b[AIFF_SURFACE / sizeof(T)];               \
    memcpy(a, into, channels * sizeof(T));                                    \
    memcpy(b, from, channels * sizeof(T));                                    \
    for (uint32_t i = 0; i < channels; i++) a[i] = b[i] > a[i] ? b[i] : a[i]; \
    memcpy(into, a, channels * sizeof(T));                                    \
  }
LARGEST(uint8_t, largest_u8)
LARGEST(int8_t, largest_i8)
LARGEST(uint16_t, largest_u16)
LARGEST(int16_t, largest_i16)

static void pool(const struct aiff_plan *plan, const struct aiff_pool *pool) {
  const struct aiff_image *in = &pool->input, *out = &pool->output;
  void (*largest)(uint8_t *, const uint8_t *, uint32_t) =
      in->item == 1 ? (pool->is_signed ? largest_i8 : largest_u8) : (pool->is_signed ? largest_i16 : largest_u16);
  const uint32_t each = AIFF_SURFACE / in->item;
  for (uint32_t c = 0; c < out->channels; c += each) {
    uint32_t channels = out->channels - c < each ? out->channels - c : each;
    for (uint32_t y = 0; y < out->height; y++)
      for (uint32_t x = 0; x < out->width; x++) {
        uint8_t found[AIFF_SURFACE];
        memcpy(found, pixel(plan, in, y * pool->stride_h, x * pool->stride_w, c), channels * in->item);
        for (uint32_t i = 0; i < pool->kernel_h; i++)
          for (uint32_t j = 0; j < pool->kernel_w; j++)
            largest(found, pixel(plan, in, y * pool->stride_h + i, x * pool->stride_w + j, c), channels);
        memcpy(pixel(plan, out, y, x, c), found, channels * out->item);
      }
  }
}

/* --------------------------------------------------------------------------------------------------------- convolution */

/* The weights of a 1x1 convolution, all output channels of an input channel together, padded to groups of 32. In the
 * stream: chunks of 256 input channels, in them groups of 32 output channels, in them input channels. */
enum { CHUNK = 256, GROUP = 32 };

static uint32_t padded(uint32_t channels) { return (channels + GROUP - 1) / GROUP * GROUP; }

static bool unpack(struct aiff_plan *plan, uint32_t node, const struct aiff_stream *stream, int8_t *packed,
                   int8_t *weights) {
  uint32_t inputs = stream->input.channels, outputs = padded(stream->output.channels);
  uint64_t count = (uint64_t)inputs * outputs;
  const uint8_t *from = aiff_reach(&plan->memory, stream->weights, stream->weight_bytes);
  if (!aiff_unpack(from, stream->weight_bytes, stream->format, packed, count))
    return aiff_refuse(plan, "AIFF node %u: mtp[%u].weight_addr: the %llu bytes at %#llx are no %llu packed weights", node,
                       stream->unit, (unsigned long long)stream->weight_bytes, (unsigned long long)stream->weights,
                       (unsigned long long)count);
  for (uint32_t chunk = 0; chunk < inputs; chunk += CHUNK)
    for (uint32_t group = 0; group < outputs; group += GROUP)
      for (uint32_t c = chunk; c < inputs && c < chunk + CHUNK; c++, packed += GROUP)
        memcpy(&weights[(uint64_t)c * outputs + group], packed, GROUP);
  return true;
}

/* Exact sums: 4095 channels of products of bytes fit 32 bits. */
static void convolve(const struct aiff_plan *plan, const struct aiff_stream *stream, const int8_t *weights, uint32_t y,
                     uint32_t x, int32_t *sums) {
  uint32_t outputs = padded(stream->output.channels);
  memset(sums, 0, outputs * sizeof *sums);
  for (uint32_t c = 0; c < stream->input.channels; c += AIFF_SURFACE) {
    const int8_t *from = (const int8_t *)pixel(plan, &stream->input, y, x, c);
    for (uint32_t i = 0; i < AIFF_SURFACE; i++) {
      const int8_t *row = &weights[(uint64_t)(c + i) * outputs];
      for (uint32_t o = 0; o < outputs; o++) sums[o] += from[i] * row[o];
    }
  }
}

static void pass(const struct aiff_plan *plan, const struct aiff_stream *stream, uint32_t y, uint32_t x, int32_t *values) {
  for (uint32_t c = 0; c < stream->input.channels; c += AIFF_SURFACE) {
    const uint8_t *from = pixel(plan, &stream->input, y, x, c);
    for (uint32_t i = 0; i < AIFF_SURFACE && c + i < stream->input.channels; i++) values[c + i] = from[i];
  }
}

/* ----------------------------------------------------------------------------------------------------- post-processing */

struct stage {
  struct aiff_plan *plan;
  const struct aiff_stream *stream;
  const uint8_t *biases, *table;
  uint32_t node, channel;
};

#define NOT_KNOWN(at, name, trust, v, why)                                                                             \
  aiff_refuse((at)->plan, "AIFF node %u: itp[%u].%s: the value %lld " why "%s%s", (at)->node, (at)->stream->unit, name, \
              (long long)(v), *(trust) ? "; COMPASS_AIFF_ASSUME=" trust : "", *(trust) ? " takes it on trust" : "")

static int64_t half_word(const uint8_t *words, uint64_t index) {
  int16_t found;
  memcpy(&found, words + 2 * index, sizeof found);
  return found;
}

static bool add_and_scale(const struct stage *at, int64_t *v) {
  const struct aiff_stream *stream = at->stream;
  if (!stream->has_m0) return true;
  int64_t product = (*v + half_word(at->biases, at->channel)) * stream->m0_factor;
  int64_t half = 1ll << (stream->m0_shift - 1);
  if ((product & (2 * half - 1)) == half && !aiff_assume(at->plan, ASSUME_HALF_UP))
    return NOT_KNOWN(at, "m0_ccfg.mul_trsh", "half-up", product, "lies in the middle of two results: not modelled");
  *v = (product + half) >> stream->m0_shift;
  if (stream->has_relu && *v < 0) *v = 0;
  if (*v != (int32_t)*v)
    return NOT_KNOWN(at, "m0_ccfg", "", *v, "does not fit 32 bits: saturation is not modelled");
  return true;
}

static bool look_up(const struct stage *at, int64_t *v) {
  const struct aiff_stream *stream = at->stream;
  if (stream->has_e) *v *= stream->e_factor;
  if (!stream->has_table) return true;
  int64_t index = *v >> stream->table_shift, part = *v & ((1ll << stream->table_shift) - 1);
  if (index < 0 || index > 255) return NOT_KNOWN(at, "lut_ocfg", "", *v, "lies outside of the table: not modelled");
  int64_t low = half_word(at->table, (uint64_t)index);
  if (part && !aiff_assume(at->plan, ASSUME_INTERPOLATE))
    return NOT_KNOWN(at, "lut_ocfg", "interpolate", *v, "lies between two entries of the table: not modelled");
  *v = low + ((half_word(at->table, (uint64_t)index + 1) - low) * part >> stream->table_shift);
  return true;
}

static bool finish(const struct stage *at, int64_t v, uint8_t *into) {
  if (!add_and_scale(at, &v) || !look_up(at, &v)) return false;
  if (v < INT8_MIN || v > INT8_MAX) {
    if (!aiff_assume(at->plan, ASSUME_CLAMP))
      return NOT_KNOWN(at, "ocvt_cfg", "clamp", v, "does not fit int8: what becomes of it is not modelled");
    v = v < 0 ? INT8_MIN : INT8_MAX;
  }
  *into = (uint8_t)v;
  return true;
}

static bool post_process(struct stage *at, const int32_t *values, uint32_t y, uint32_t x) {
  const struct aiff_image *out = &at->stream->output;
  for (uint32_t c = 0; c < out->channels; c += AIFF_SURFACE) {
    uint8_t *into = pixel(at->plan, out, y, x, c);
    for (uint32_t i = 0; i < AIFF_SURFACE && c + i < out->channels; i++) {
      at->channel = c + i;
      if (!finish(at, values[c + i], into + i)) return false;
    }
  }
  return true;
}

static bool flow(struct aiff_plan *plan, uint32_t node, const struct aiff_stream *stream, int32_t *values,
                 const int8_t *weights) {
  const struct aiff_image *out = &stream->output;
  struct stage at = {.plan = plan, .stream = stream, .node = node};
  at.biases = aiff_reach(&plan->memory, stream->biases, 1);
  at.table = aiff_reach(&plan->memory, stream->table, 1);
  for (uint32_t y = 0; y < out->height; y++)
    for (uint32_t x = 0; x < out->width; x++) {
      if (weights)
        convolve(plan, stream, weights, y, x, values);
      else
        pass(plan, stream, y, x, values);
      if (!post_process(&at, values, y, x)) return false;
    }
  return true;
}

static bool run_stream(struct aiff_plan *plan, uint32_t node, const struct aiff_stream *stream) {
  uint64_t outputs = padded(stream->output.channels), count = stream->input.channels * outputs;
  bool convolves = stream->kind == INPUT_CONVOLVED;
  int32_t *values = malloc(outputs * sizeof *values);
  int8_t *packed = convolves ? malloc(count) : NULL, *weights = convolves ? malloc(count) : NULL;
  bool done = values && (!convolves || (packed && weights));
  if (!done) aiff_refuse(plan, "AIFF node %u: there is no memory for %llu weights", node, (unsigned long long)count);
  done = done && (!convolves || unpack(plan, node, stream, packed, weights)) && flow(plan, node, stream, values, weights);
  free(weights);
  free(packed);
  free(values);
  return done;
}

bool aiff_execute(struct aiff_plan *plan) {
  for (uint32_t i = 0; i < plan->count; i++) {
    const struct aiff_execution *execution = &plan->executions[i];
    if (execution->pools)
      pool(plan, &execution->pool);
    else if (!run_stream(plan, execution->node, &execution->streams[0]) ||
             !run_stream(plan, execution->node, &execution->streams[1]))
      return false;
  }
  return true;
}
