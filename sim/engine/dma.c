#include "dma.h"

static void *at(uint64_t address) { return (void *)address; }

typedef uint8_t block16 __attribute__((vector_size(16), aligned(1)));
typedef uint8_t block32 __attribute__((vector_size(32), aligned(1)));
typedef uint8_t block64 __attribute__((vector_size(64), aligned(1)));
typedef uint8_t block128 __attribute__((vector_size(128), aligned(1)));
typedef uint16_t pair __attribute__((aligned(1)));
typedef uint32_t word __attribute__((aligned(1)));
typedef uint64_t words __attribute__((aligned(1)));

/* Short rows far apart are no stream that the processor would fetch ahead of. */
enum { LINE = 64, AHEAD = 12, SHORT = 1024 };

static inline __attribute__((always_inline)) void fetch_ahead(const uint8_t *row, uint64_t stride, uint64_t width) {
  if (stride < LINE) return;
  for (uint64_t i = 0; i < width; i += LINE) __builtin_prefetch(row + AHEAD * stride + i);
}

/* Rows of one item of a type; of more than one, and fewer than two: the first and the last one, which overlap. */
#define COPY_SHORT_ROWS(type)                                                    \
  {                                                                              \
    const uint64_t from_stride = r->src_stride, to_stride = r->dst_stride;       \
    const uint64_t last = r->width - sizeof(type);                               \
    for (; !last && rows; rows--, from += from_stride, to += to_stride) {        \
      fetch_ahead(from, from_stride, sizeof(type));                              \
      *(type *)to = *(const type *)from;                                         \
    }                                                                            \
    for (; rows; rows--, from += from_stride, to += to_stride) {                 \
      fetch_ahead(from, from_stride, 2 * sizeof(type));                          \
      type head = *(const type *)from, tail = *(const type *)(from + last);      \
      *(type *)to = head, *(type *)(to + last) = tail;                           \
    }                                                                            \
    return;                                                                      \
  }

/* Copies of an instruction set. The C library's own way with tiles (`rep movsb`) is many times slower from the first level
 * cache to memory on some processors; it is left what is huge or overlaps. */
#define COPIES(set, isa)                                                                                        \
  isa static void copy_##set(void *dst, const void *src, uint64_t size) {                                       \
    enum { STEP = sizeof(block128), MOST = 1 << 20 };                                                           \
    uint64_t distance = (uint64_t)dst - (uint64_t)src;                                                          \
    if (size < STEP || size > MOST || distance < size || -distance < size) {                                    \
      memmove(dst, src, size);                                                                                  \
      return;                                                                                                   \
    }                                                                                                           \
    for (uint64_t i = 0, last = size - STEP;; i = i + STEP < last ? i + STEP : last) {                          \
      *(block128 *)((uint8_t *)dst + i) = *(const block128 *)((const uint8_t *)src + i);                        \
      if (i == last) break;                                                                                     \
    }                                                                                                           \
  }                                                                                                             \
  isa static void copy_rows_##set(const struct dma_request *r, uint64_t rows) {                                 \
    const uint8_t *from = at(r->src);                                                                           \
    uint8_t *to = at(r->dst);                                                                                   \
    switch (31 - __builtin_clz(r->width)) {                                                                     \
      case 0: COPY_SHORT_ROWS(uint8_t);                                                                         \
      case 1: COPY_SHORT_ROWS(pair);                                                                            \
      case 2: COPY_SHORT_ROWS(word);                                                                            \
      case 3: COPY_SHORT_ROWS(words);                                                                           \
      case 4: COPY_SHORT_ROWS(block16);                                                                         \
      case 5: COPY_SHORT_ROWS(block32);                                                                         \
      case 6: COPY_SHORT_ROWS(block64);                                                                         \
      case 7: COPY_SHORT_ROWS(block128);                                                                        \
    }                                                                                                           \
    for (; rows; rows--, from += r->src_stride, to += r->dst_stride) {                                          \
      if (r->width <= SHORT) fetch_ahead(from, r->src_stride, r->width);                                        \
      copy_##set(to, from, r->width);                                                                           \
    }                                                                                                           \
  }
COPIES(any, )
COPIES(avx, __attribute__((target("avx"))))

/* Whether the processor has 256-bit vectors, and the system keeps them. */
static bool has_avx(void) {
  enum { PROCESSOR = 1, SAVED_AND_AVX = 3 << 27, STATES = 6 };
  uint32_t a = PROCESSOR, b, c = 0, d;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if ((c & SAVED_AND_AVX) != SAVED_AND_AVX) return false;
  __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (a & STATES) == STATES;
}

static void copy_rows(const struct dma_request *r) {
  static _Atomic int wide = -1;
  if (r->width == 0) return;
  if (wide < 0) wide = has_avx();
  uint32_t rows = r->size / r->width;
  if (r->src_stride == r->width && r->dst_stride == r->width)
    (wide ? copy_avx : copy_any)(at(r->dst), at(r->src), (uint64_t)rows * r->width);
  else
    (wide ? copy_rows_avx : copy_rows_any)(r, rows);
}

static void upsample(const struct dma_request *r) {
  for (uint64_t row = 0; row < r->h_scale; row++)
    for (uint64_t pixel = 0; pixel < r->count; pixel++)
      for (uint64_t s = 0; s < r->w_scale; s++)
        memmove(at(r->dst + row * r->row_stride + (pixel * r->w_scale + s) * r->dst_stride),
                at(r->src + pixel * r->src_stride), r->width);
}

/* Whether source and destination of a transposition overlap. */
static bool transposes_in_place(const struct dma_request *r) {
  uint64_t from = (r->count - 1ull) * r->src_stride + r->width, to = (r->width - 1ull) * r->dst_stride + r->count;
  return r->src < r->dst + to * r->item && r->dst < r->src + from * r->item;
}

#define ALTERNATE_16(n, a, b)                                                                                      \
  __builtin_shufflevector(a, b, n, 16 + n, 1 + n, 17 + n, 2 + n, 18 + n, 3 + n, 19 + n, 4 + n, 20 + n, 5 + n, 21 + n, \
                          6 + n, 22 + n, 7 + n, 23 + n)
#define ALTERNATE_8(n, a, b) __builtin_shufflevector(a, b, n, 8 + n, 1 + n, 9 + n, 2 + n, 10 + n, 3 + n, 11 + n)
#define ALTERNATE_4(n, a, b) __builtin_shufflevector(a, b, n, 4 + n, 1 + n, 5 + n)

/* dst[j * dst_stride + i] = src[i * src_stride + j]. Squares with sides of 16 bytes go through registers: their rows are
 * dealt out alternately, those of the upper half with those of the lower one, as often as the side can be halved. Few rows,
 * as the planes of an image, are loops of so many assignments. The rest is moved one by one, in blocks that fit the cache. */
#define BLOCK 32u
#define TRANSPOSE(T, SIDE)                                                                                  \
  static void transpose_square_##T(T *dst, uint64_t dst_stride, const T *src, uint64_t src_stride) {        \
    typedef T row __attribute__((vector_size(16), aligned(1)));                                             \
    row rows[SIDE], dealt[SIDE];                                                                            \
    _Pragma("unroll") for (unsigned i = 0; i < SIDE; i++) rows[i] = *(const row *)(src + i * src_stride);   \
    _Pragma("unroll") for (unsigned turns = SIDE; turns > 1; turns /= 2) {                                  \
      _Pragma("unroll") for (unsigned i = 0; i < SIDE / 2; i++) {                                           \
        dealt[2 * i] = ALTERNATE_##SIDE(0, rows[i], rows[i + SIDE / 2]);                                    \
        dealt[2 * i + 1] = ALTERNATE_##SIDE(SIDE / 2, rows[i], rows[i + SIDE / 2]);                         \
      }                                                                                                     \
      _Pragma("unroll") for (unsigned i = 0; i < SIDE; i++) rows[i] = dealt[i];                             \
    }                                                                                                       \
    _Pragma("unroll") for (unsigned j = 0; j < SIDE; j++) *(row *)(dst + j * dst_stride) = rows[j];         \
  }                                                                                                         \
  static inline __attribute__((always_inline)) void transpose_part_##T(                                     \
      T *dst, uint64_t dst_stride, const T *src, uint64_t src_stride, uint64_t rows, uint64_t columns) {    \
    for (uint64_t j = 0; j < columns; j++)                                                                  \
      for (uint64_t i = 0; i < rows; i++) dst[j * dst_stride + i] = src[i * src_stride + j];                \
  }                                                                                                         \
  static void transpose_##T(const struct dma_request *r) {                                                  \
    T *dst = at(r->dst);                                                                                    \
    const T *src = at(r->src);                                                                              \
    uint64_t to = r->dst_stride, from = r->src_stride, rows = r->count, columns = r->width;                 \
    bool apart = !transposes_in_place(r);                                                                   \
    if (apart && rows == 2) return transpose_part_##T(dst, to, src, from, 2, columns);                      \
    if (apart && rows == 3) return transpose_part_##T(dst, to, src, from, 3, columns);                      \
    if (apart && rows == 4) return transpose_part_##T(dst, to, src, from, 4, columns);                      \
    uint64_t side = apart && rows >= SIDE && columns >= SIDE ? SIDE : BLOCK;                                \
    for (uint64_t i = 0; i < rows; i += side)                                                               \
      for (uint64_t j = 0; j < columns; j += side) {                                                        \
        uint64_t tall = rows - i < side ? rows - i : side, long_ = columns - j < side ? columns - j : side; \
        if (side == SIDE && tall == SIDE && long_ == SIDE)                                                  \
          transpose_square_##T(dst + j * to + i, to, src + i * from + j, from);                             \
        else                                                                                                \
          transpose_part_##T(dst + j * to + i, to, src + i * from + j, from, tall, long_);                  \
      }                                                                                                     \
  }
typedef uint16_t half __attribute__((aligned(1)));
typedef uint32_t word __attribute__((aligned(1)));
TRANSPOSE(uint8_t, 16)
TRANSPOSE(half, 8)
TRANSPOSE(word, 4)

/* The hardware cannot describe a row or column longer than this many bytes and does nothing then. */
#define TRANSPOSE_LIMIT 0xffffffu
static void transpose(const struct dma_request *r) {
  if ((uint64_t)r->width * r->item > TRANSPOSE_LIMIT || (uint64_t)r->count * r->item > TRANSPOSE_LIMIT) return;
  if (r->item == 1) transpose_uint8_t(r);
  if (r->item == 2) transpose_half(r);
  if (r->item == 4) transpose_word(r);
}

static void fill(const struct dma_request *r) {
  uint8_t *dst = at(r->dst);
  uint32_t value = (uint32_t)r->src, item = r->item == 1 ? 1 : r->item == 2 ? 2 : 4;
  if (item == 1) value = (value & 0xff) * 0x01010101u;
  if (item == 2) value = (value & 0xffff) * 0x00010001u;
  uint64_t size = r->size - r->size % item;
  if (value == (value & 0xff) * 0x01010101u) {
    memset(dst, (int)(value & 0xff), size);
    return;
  }
  for (uint64_t i = 0; i < size; i += item) memcpy(dst + i, &value, item == 2 ? 2 : 4);
}

void transfer(const struct dma_request *request) {
  static void (*const modes[])(const struct dma_request *) = {copy_rows, transpose, upsample, fill};
  if (request->mode < sizeof modes / sizeof *modes) modes[request->mode](request);
}

static const struct limit {
  const char *name;
  size_t field;
  uint32_t most;
} limits[] = {
    {"a row", offsetof(struct dma_request, width), MOST_ROW},
    {"the stride of the source", offsetof(struct dma_request, src_stride), MOST_BYTES},
    {"the stride of the destination", offsetof(struct dma_request, dst_stride), MOST_BYTES},
    {"the whole transfer", offsetof(struct dma_request, size), MOST_BYTES},
};

void exceeds_descriptor(const struct dma_request *request, char *message, size_t size) {
  _Pragma("unroll") for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    uint32_t value;
    memcpy(&value, (const char *)request + limits[i].field, sizeof value);
    if (value <= limits[i].most) continue;
    snprintf(message, size,
             "an asynchronous DMA copy is too large for a DMA descriptor: %s has %u bytes, at most %u fit",
             limits[i].name, value, limits[i].most);
    return;
  }
}
