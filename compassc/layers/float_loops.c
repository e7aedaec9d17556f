/* Loops over float32 that NumPy would pass memory many times for: the functions of float_loops.py, where each has its meaning.
 *
 * Each number is made by the same operations in the same order as there, each of them rounded, so the bits are the same. The
 * exponential function stands behind this text: `host_math.py` has it.
 */
#define PUBLIC __attribute__((visibility("default")))
#define LANES 16
#define MOST_BINS 4096
#define BLOCK 2048
#define TABLES 4
#define FEW 16384
#define TOGETHER 6
#define PLACES (16 * TOGETHER)
#define CELLS 64
#define INLINE static inline

typedef float Lanes __attribute__((ext_vector_type(LANES), aligned(4)));
typedef float Half __attribute__((ext_vector_type(LANES / 2), aligned(4)));
typedef double Doubles __attribute__((ext_vector_type(LANES)));
typedef int Whole __attribute__((ext_vector_type(LANES), aligned(4)));

#define AT(p) (*(const Lanes *)(p))
#define PUT(p) (*(Lanes *)(p))

INLINE Lanes exp_Lanes(Lanes x);

struct range {
  float low, high;
  int strange; /* whether there was a NaN */
};

INLINE struct range widened(struct range at, const float *x, long many) {
  long i = 0;
  if (many >= 2 * LANES) {
    Lanes low0 = AT(x), high0 = low0, low1 = AT(x + LANES), high1 = low1;
    Whole strange = {0};
    for (; i + 2 * LANES <= many; i += 2 * LANES) {
      Lanes a = AT(x + i), b = AT(x + i + LANES);
      low0 = a < low0 ? a : low0, high0 = a > high0 ? a : high0;
      low1 = b < low1 ? b : low1, high1 = b > high1 ? b : high1;
      strange |= (a != a) | (b != b);
    }
    low0 = low1 < low0 ? low1 : low0, high0 = high1 > high0 ? high1 : high0;
    for (int k = 0; k < LANES; k++) {
      at.low = low0[k] < at.low ? low0[k] : at.low, at.high = high0[k] > at.high ? high0[k] : at.high;
      at.strange |= strange[k];
    }
  }
  for (; i < many; i++) {
    at.low = x[i] < at.low ? x[i] : at.low, at.high = x[i] > at.high ? x[i] : at.high;
    at.strange |= x[i] != x[i];
  }
  return at;
}

/* The smallest and the largest of each of `rows` of `many` numbers, which is at least 1; and, where `step` is not 0, one of so many
 * numbers, taken while they are in the cache. */
PUBLIC void extremes(const float *x, long rows, long many, float *least, float *most, long step, float *taken) {
  long next = 0, at = 0;
  for (long row = 0; row < rows; row++) {
    struct range found = {x[at], x[at], 0};
    for (long end = at + many; at < end;) {
      long here = end - at < BLOCK ? end - at : BLOCK;
      found = widened(found, x + at, here);
      at += here;
      if (step)
        for (; next < at; next += step) *taken++ = x[next];
    }
    least[row] = found.strange ? __builtin_nanf("") : found.low + 0.0f;
    most[row] = found.strange ? __builtin_nanf("") : found.high + 0.0f;
  }
}

/* How many numbers fall into each bin from -bound on, `factor` bins to 1; the last one is of the other bound itself. 1 where a number
 * is beyond them. Values beside each other often are the same: they go into tables of their own, for a count that was just
 * written is slow to read. */
PUBLIC int counts(const float *x, long many, double bound, double factor, long bins, long *found) {
  unsigned tables[TABLES][MOST_BINS + 1];
  Whole strange = {0};
  if (bins > MOST_BINS) return 1;
  const int others = many < FEW ? 0 : TABLES - 1; /* of few numbers one table takes less time */
  for (int k = 0; k <= others; k++) __builtin_memset(tables[k], 0, (bins + 1) * sizeof(unsigned));
  const float limit = (float)bound;
  for (long i = 0; i + LANES <= many; i += LANES) {
    Lanes value = AT(x + i);
    Whole wrong = ~((value >= -limit) & (value <= limit));
    strange |= wrong;
    value = wrong ? (Lanes){0} : value;
    Whole bin = __builtin_convertvector((__builtin_convertvector(value, Doubles) + bound) * factor, Whole);
#pragma unroll
    for (int k = 0; k < LANES; k++) tables[k & others][bin[k]]++;
  }
  int beyond = 0;
  for (long i = many / LANES * LANES; i < many; i++) {
    int wrong = !(x[i] >= -limit && x[i] <= limit);
    beyond |= wrong;
    tables[0][wrong ? 0 : (int)(((double)x[i] + bound) * factor)]++;
  }
  for (long bin = 0; bin <= bins; bin++) {
    found[bin] = 0;
    for (int k = 0; k <= others; k++) found[bin] += tables[k][bin];
  }
  for (int k = 0; k < LANES; k++) beyond |= strange[k];
  return beyond;
}

/* Sums plus a line of `many` numbers, limited. */
PUBLIC void finish(float *sums, long rows, long many, const float *line, float low, float high) {
  for (long row = 0; row < rows; row++, sums += many)
    for (long i = 0; i < many; i++) {
      float value = sums[i] + line[i];
      value = value <= low ? low : value;
      sums[i] = value >= high ? high : value;
    }
}

struct window {
  long samples, rows, columns, channels; /* of the output */
  long height, width, inputs;            /* of the image */
  long top, left;                        /* where the first window begins in it */
  long down, right;                      /* from one window to the next */
  long high, wide, lower, further;       /* cells, and from one to the next */
};

/* A window: where it begins, in the image of which sample. */
struct place {
  long y, x;
  const float *image;
};

/* The window behind those that have a place. */
struct next {
  long row, column;
  const float *image;
};

/* The place of each of `many` windows from `start` on, the last one again where there are no more; `next` is moved behind them. */
INLINE void placed(struct place *places, long many, long start, struct next *next, const struct window *at) {
  const long positions = at->samples * at->rows * at->columns;
  for (long k = 0; k < many; k++) {
    places[k] = (struct place){at->top + next->row * at->down, at->left + next->column * at->right, next->image};
    if (start + k + 1 < positions && ++next->column == at->columns) {
      next->column = 0;
      if (++next->row == at->rows) next->row = 0, next->image += at->height * at->width * at->inputs;
    }
  }
}

/* What a cell sees at a place: `around` outside the image. */
INLINE const float *seen_at(const struct place *place, long v, long u, const float *around, const struct window *at) {
  long y = place->y + v * at->lower, x = place->x + u * at->further;
  int outside = y < 0 || y >= at->height || x < 0 || x >= at->width;
  return outside ? around : place->image + (y * at->width + x) * at->inputs;
}

/* For a vector of channels, the sums of some cells at `count` of some places, beside those of cells `before`. */
#define CHANNELS(type)                                                                                  \
  for (; channel + (long)(sizeof(type) / sizeof(float)) <= at->channels; channel += sizeof(type) / sizeof(float)) { \
    const float *factors = filters + before * at->channels + channel;                                   \
    const type added = *(const type *)(line + channel);                                                 \
    float *to = out + start * at->channels + channel;                                                   \
    type sums[TOGETHER];                                                                                \
    _Pragma("unroll") for (int k = 0; k < TOGETHER; k++)                                                \
      sums[k] = before && k < count ? *(const type *)(to + k * at->channels) : -(type){0};              \
    for (long cell = 0; cell < here; cell++, factors += at->channels) {                                 \
      const type factor = *(const type *)factors;                                                       \
      _Pragma("unroll") for (int k = 0; k < TOGETHER; k++) sums[k] += *(const type *)(seen[cell][k] + channel) * factor; \
    }                                                                                                   \
    _Pragma("unroll") for (int k = 0; k < TOGETHER; k++) {                                              \
      if (k >= count) break;                                                                            \
      type value = sums[k];                                                                             \
      if (before + here == cells) {                                                                     \
        value += added;                                                                                 \
        value = value <= low ? low : value;                                                             \
        value = value >= high ? high : value;                                                           \
      }                                                                                                 \
      *(type *)(to + k * at->channels) = value;                                                         \
    }                                                                                                   \
  }

/* For each channel the sum, over the cells of a window, of what a cell sees times its factor; then as `finish`. Filters [high, wide,
 * channels]. */
PUBLIC void channel_sums(float *out, const float *image, const float *filters, const float *around,
                         const struct window *at, const float *line, float low, float high) {
  const long positions = at->samples * at->rows * at->columns, cells = at->high * at->wide;
  struct next next = {0, 0, image};
  for (long start = 0; start < positions; start += TOGETHER) {
    struct place places[TOGETHER];
    placed(places, TOGETHER, start, &next, at);
    const long count = positions - start < TOGETHER ? positions - start : TOGETHER;
    for (long before = 0, here; before < cells; before += here) {
      const float *seen[CELLS][TOGETHER];
      here = cells - before < CELLS ? cells - before : CELLS;
      for (long cell = 0; cell < here; cell++)
        for (int k = 0; k < TOGETHER; k++)
          seen[cell][k] = seen_at(places + k, (before + cell) / at->wide, (before + cell) % at->wide, around, at);
      long channel = 0;
      CHANNELS(Lanes)
      CHANNELS(Half)
      CHANNELS(float)
    }
  }
}

/* For some filters, a vector of them, the sums at `count` of some places: so many as registers hold. */
#define FILTERS(name, type)                                                                                       \
  INLINE __attribute__((always_inline)) void name(                                                                  \
      float *out, long count, long many, const struct place *places, const float *filters, const float *around,     \
      const struct window *at, long inputs, const float *line, float low, float high) {                             \
    const long size = sizeof(type) / sizeof(float);                                                               \
    const type added = *(const type *)line;                                                                       \
    type sums[TOGETHER];                                                                                          \
    _Pragma("unroll") for (int k = 0; k < TOGETHER; k++) sums[k] = -(type){0};                                    \
    for (long v = 0; v < at->high; v++)                                                                           \
      for (long u = 0; u < at->wide; u++) {                                                                       \
        const float *seen[TOGETHER];                                                                              \
        _Pragma("unroll") for (int k = 0; k < TOGETHER; k++) {                                                    \
          seen[k] = seen_at(places + k, v, u, around, at);                                                        \
        }                                                                                                         \
        for (long i = 0; i < inputs; i++, filters += size) {                                                      \
          const type factors = *(const type *)filters;                                                            \
          _Pragma("unroll") for (int k = 0; k < TOGETHER; k++) sums[k] += seen[k][i] * factors;                   \
        }                                                                                                         \
      }                                                                                                           \
    _Pragma("unroll") for (int k = 0; k < TOGETHER; k++, out += at->channels) {                                   \
      if (k >= count) break;                                                                                      \
      type value = sums[k] + added;                                                                               \
      value = value <= low ? low : value;                                                                         \
      value = value >= high ? high : value;                                                                       \
      if (many >= size) *(type *)out = value;                                                                     \
      else for (long j = 0; j < many; j++) out[j] = value[j];                                                     \
    }                                                                                                             \
  }

FILTERS(sums_of_many, Lanes)
FILTERS(sums_of_few, Half)

/* For each filter the sum, over the cells of a window and their `inputs` channels, of what is seen times its factor; then as `finish`.
 * Filters [.., high, wide, inputs, LANES], of the last ones LANES / 2 where there are no more, and so many numbers in the line.
 * Places are taken some at a time, so that they are in the cache for all filters. */
PUBLIC void filter_sums(float *out, const float *image, const float *filters, const float *around, const struct window *at,
                        const float *line, float low, float high) {
  const long inputs = at->inputs;
  struct place places[PLACES];
  const long positions = at->samples * at->rows * at->columns, inner = at->high * at->wide * inputs;
  struct next next = {0, 0, image};
  for (long start = 0; start < positions; start += PLACES) {
    placed(places, PLACES, start, &next, at);
    const float *own = filters;
    for (long channel = 0; channel < at->channels; channel += LANES, own += inner * LANES)
      for (long k = 0; k < PLACES && start + k < positions; k += TOGETHER) {
        const long first = start + k, many = at->channels - channel;
        float *to = out + first * at->channels + channel;
        const float *next = line + channel;
        if (many > LANES / 2) sums_of_many(to, positions - first, many, places + k, own, around, at, inputs, next, low, high);
        else sums_of_few(to, positions - first, many, places + k, own, around, at, inputs, next, low, high);
      }
  }
}

INLINE Lanes sigmoid(Lanes x) { return 1.0f / (exp_Lanes(-x) + 1.0f); }

INLINE Lanes silu(Lanes x) { return x * sigmoid(x); }

INLINE Lanes erf_of(Lanes x) {
  Lanes bell = (Lanes)((Whole)x & 0x7fffffff);
  Lanes t = 1.0f / (bell * 0.3275911f + 1.0f);
  Lanes series = t * 1.061405429f;
  series = (series - 1.453152027f) * t;
  series = (series + 1.421413741f) * t;
  series = (series - 0.284496736f) * t;
  series = (series + 0.254829592f) * t;
  series = 1.0f - series * exp_Lanes(-(bell * bell));
  return (Lanes)(((Whole)series & 0x7fffffff) | ((Whole)x & (-0x7fffffff - 1)));
}

INLINE Lanes gelu(Lanes x) { return (erf_of(x * 0x1.6a09e6p-1f) + 1.0f) * (x * 0.5f); }

#define EACH(name, function)                                                \
  PUBLIC void name(float *out, const float *x, long many) {                 \
    long i = 0;                                                             \
    for (; i + LANES <= many; i += LANES) PUT(out + i) = function(AT(x + i)); \
    if (i < many) {                                                         \
      Lanes last = {0};                                                     \
      for (long k = 0; i + k < many; k++) last[k] = x[i + k];               \
      last = function(last);                                                \
      for (long k = 0; i + k < many; k++) out[i + k] = last[k];             \
    }                                                                       \
  }

EACH(each_exp, exp_Lanes)
EACH(each_sigmoid, sigmoid)
EACH(each_silu, silu)
EACH(each_erf, erf_of)
EACH(each_gelu, gelu)
