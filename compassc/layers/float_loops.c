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
#define OVER 3
#define MOST_BESIDE 8
#define MOST_HIGH 8
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

/* What is wanted of numbers that come one after the other, in rows of `many`: the smallest and the largest of each row, and, where
 * `step` is not 0, one of so many numbers. */
struct wanted {
  float *least, *most;
  long many, step;
  float *taken;
};

/* How far that is done. */
struct summary {
  struct wanted to;
  long at, next, row; /* numbers seen, the next one that is taken, and the end of the row */
  struct range found;
};

INLINE struct summary summary_of(const struct wanted *wanted) { return (struct summary){*wanted, 0, 0, 0, {0}}; }

/* Takes in the next `count` numbers, while they are in the cache. */
static void take_in(struct summary *own, const float *x, long count) {
  for (const float *end = x + count; x < end;) {
    if (own->at == own->row) own->row += own->to.many, own->found = (struct range){*x, *x, 0};
    long here = own->row - own->at < end - x ? own->row - own->at : end - x;
    here = here < BLOCK ? here : BLOCK;
    own->found = widened(own->found, x, here);
    if (own->to.step)
      for (; own->next < own->at + here; own->next += own->to.step) *own->to.taken++ = x[own->next - own->at];
    own->at += here, x += here;
    if (own->at == own->row) {
      *own->to.least++ = own->found.strange ? __builtin_nanf("") : own->found.low + 0.0f;
      *own->to.most++ = own->found.strange ? __builtin_nanf("") : own->found.high + 0.0f;
    }
  }
}

PUBLIC void extremes(const float *x, long count, const struct wanted *wanted) {
  struct summary own = summary_of(wanted);
  take_in(&own, x, count);
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

/* A number within limits. */
INLINE float limited(float value, float low, float high) {
  value = value <= low ? low : value;
  return value >= high ? high : value;
}

/* Sums plus a line of `many` numbers, limited. */
PUBLIC void finish(float *sums, long rows, long many, const float *line, float low, float high) {
  for (long row = 0; row < rows; row++, sums += many)
    for (long i = 0; i < many; i++) sums[i] = limited(sums[i] + line[i], low, high);
}

/* A function of each two numbers, limited; what is `wanted` of them is taken in while they are in the cache. */
#define PAIRS(name, operator)                                                                                       \
  PUBLIC void name(float *out, const float *a, const float *b, long many, float low, float high,                    \
                   const struct wanted *wanted) {                                                                   \
    struct summary summary;                                                                                         \
    if (wanted) summary = summary_of(wanted);                                                                       \
    for (long here; many; many -= here, out += here, a += here, b += here) {                                        \
      here = many < BLOCK ? many : BLOCK;                                                                           \
      for (long i = 0; i < here; i++) out[i] = limited(a[i] operator b[i], low, high);                              \
      if (wanted) take_in(&summary, out, here);                                                                     \
    }                                                                                                               \
  }

PAIRS(pairs_add, +)
PAIRS(pairs_subtract, -)
PAIRS(pairs_multiply, *)

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
  const float *image, *corner; /* where it begins, too, if it lies inside */
};

/* Windows that are taken together, some at a time; `inside`: whether all of those see nothing but the image. */
struct places {
  struct place each[PLACES];
  char each_inside[PLACES];
  int inside[PLACES / TOGETHER];
};

/* The window behind those that have a place. */
struct next {
  long row, column;
  const float *image;
};

/* Where an element of an image is. */
INLINE const float *element(const float *image, long y, long x, const struct window *at) {
  return image + (y * at->width + x) * at->inputs;
}

/* The places of windows from `start` on, the last one again where there are no more; `next` is moved behind them. */
INLINE void placed(struct places *places, long start, struct next *next, const struct window *at) {
  const long left = at->samples * at->rows * at->columns - start, count = left < PLACES ? left : PLACES;
  const long tall = at->height - (at->high - 1) * at->lower, broad = at->width - (at->wide - 1) * at->further;
  for (long k = 0; k < count;) {
    /* those of a line of windows, which differ in their column alone */
    struct place place = {at->top + next->row * at->down, at->left + next->column * at->right, next->image, next->image};
    const int within = place.y >= 0 && place.y < tall;
    const long beside = at->columns - next->column, end = count - k < beside ? count : k + beside;
    next->column += end - k;
    long corner = (place.y * at->width + place.x) * at->inputs;
    for (; k < end; k++, place.x += at->right, corner += at->right * at->inputs) {
      const int inside = within && place.x >= 0 && place.x < broad;
      if (inside) place.corner = place.image + corner;
      places->each[k] = place, places->each_inside[k] = inside;
    }
    if (next->column == at->columns) {
      next->column = 0;
      if (++next->row == at->rows) next->row = 0, next->image += at->height * at->width * at->inputs;
    }
  }
  for (long k = count; k < PLACES; k++)
    places->each[k] = places->each[k - 1], places->each_inside[k] = places->each_inside[k - 1];
  for (long k = 0; k < PLACES; k += TOGETHER) {
    const char *inside = places->each_inside + k;
    places->inside[k / TOGETHER] = inside[0] & inside[1] & inside[2] & inside[3] & inside[4] & inside[5];
  }
}

/* What a cell sees at a place: `around` outside the image. */
INLINE const float *seen_at(const struct place *place, long v, long u, const float *around, const struct window *at) {
  long y = place->y + v * at->lower, x = place->x + u * at->further;
  int outside = y < 0 || y >= at->height || x < 0 || x >= at->width;
  return outside ? around : element(place->image, y, x, at);
}

/* What each of some cells sees at some windows. */
struct seen {
  const float *at[CELLS][TOGETHER];
};

/* What `count` cells behind those `before` see at places. */
INLINE void look(struct seen *seen, const struct place *places, int inside, long before, long count, const float *around,
                 const struct window *at) {
  long v = before / at->wide, u = before % at->wide;
  for (long cell = 0; cell < count; cell++) {
    if (inside) {
      const long further = (v * at->lower * at->width + u * at->further) * at->inputs;
      _Pragma("unroll") for (int k = 0; k < TOGETHER; k++) seen->at[cell][k] = places[k].corner + further;
    } else
      for (int k = 0; k < TOGETHER; k++) seen->at[cell][k] = seen_at(places + k, v, u, around, at);
    if (++u == at->wide) u = 0, v++;
  }
}

/* For a vector of channels, the sums of `here` cells at `count` of some places, beside those of cells `before`. */
#define CHANNELS(type)                                                                                              \
  for (; channel + (long)(sizeof(type) / sizeof(float)) <= at->channels; channel += sizeof(type) / sizeof(float)) { \
    const float *factors = filters + before * at->channels + channel;                                               \
    const type added = *(const type *)(line + channel);                                                             \
    float *to = out + channel;                                                                                      \
    type sums[TOGETHER];                                                                                            \
    _Pragma("unroll") for (int k = 0; k < TOGETHER; k++)                                                            \
      sums[k] = before && k < count ? *(const type *)(to + k * at->channels) : -(type){0};                          \
    for (long cell = 0; cell < here; cell++, factors += at->channels) {                                             \
      const type factor = *(const type *)factors;                                                                   \
      _Pragma("unroll") for (int k = 0; k < TOGETHER; k++)                                                          \
        sums[k] += *(const type *)(seen->at[cell][k] + channel) * factor;                                           \
    }                                                                                                               \
    _Pragma("unroll") for (int k = 0; k < TOGETHER; k++) {                                                          \
      if (k >= count) break;                                                                                        \
      type value = sums[k];                                                                                         \
      if (last) {                                                                                                   \
        value += added;                                                                                             \
        value = value <= low ? low : value;                                                                         \
        value = value >= high ? high : value;                                                                       \
      }                                                                                                             \
      *(type *)(to + k * at->channels) = value;                                                                     \
    }                                                                                                               \
  }

INLINE void sums_of_channels(float *out, long count, const struct seen *seen, long before, long here, int last,
                             const float *filters, const struct window *at, const float *line, float low, float high) {
  long channel = 0;
  CHANNELS(Lanes)
  CHANNELS(Half)
  CHANNELS(float)
}

/* Windows beside each other whose cells see the same columns: each number is read once for all of them. `OVER` cells of a line, which
 * lie side by side in the image. `at`: a column in a line of the window. */
struct columns {
  const float *at[MOST_HIGH][(MOST_BESIDE - 1) * 2 + OVER];
};

/* For a vector of channels, the sums at `many` windows, of which each begins `right` columns behind the one before. */
#define COLUMNS(type)                                                                                               \
  for (; channel + (long)(sizeof(type) / sizeof(float)) <= at->channels; channel += sizeof(type) / sizeof(float)) { \
    type sums[MOST_BESIDE];                                                                                         \
    const float *factors = filters + channel;                                                                       \
    _Pragma("unroll") for (int k = 0; k < many; k++) sums[k] = -(type){0};                                          \
    for (long v = 0; v < at->high; v++, factors += OVER * at->channels) {                                           \
      type factor[OVER];                                                                                            \
      _Pragma("unroll") for (int u = 0; u < OVER; u++) factor[u] = *(const type *)(factors + u * at->channels);     \
      _Pragma("unroll") for (int column = 0; column < (many - 1) * right + OVER; column++) {                        \
        const type seen = *(const type *)(columns->at[v][column] + channel);                                        \
        _Pragma("unroll") for (int k = 0; k < many; k++) {                                                          \
          const int u = column - k * right;                                                                         \
          if (u >= 0 && u < OVER) sums[k] += seen * factor[u];                                                      \
        }                                                                                                           \
      }                                                                                                             \
    }                                                                                                               \
    const type added = *(const type *)(line + channel);                                                             \
    float *to = out + channel;                                                                                      \
    _Pragma("unroll") for (int k = 0; k < many; k++, to += at->channels) {                                          \
      type value = sums[k] + added;                                                                                 \
      value = value <= low ? low : value;                                                                           \
      *(type *)to = value >= high ? high : value;                                                                   \
    }                                                                                                               \
  }

INLINE __attribute__((always_inline)) void beside(const int many, const int right, float *out, const struct columns *columns,
                                                  const float *filters, const struct window *at, const float *line, float low,
                                                  float high) {
  long channel = 0;
  COLUMNS(Half)
  COLUMNS(float)
}

/* How many windows of a line of them are taken together: so many that the fewest are taken twice. 0 where windows do not see the same
 * columns. */
INLINE long windows_beside(const struct window *at) {
  long best = 0, least = 0;
  if (at->wide != OVER || at->further != 1 || at->right > 2 || at->high > MOST_HIGH) return 0;
  for (long many = MOST_BESIDE; many > 5; many--) {
    const long all = (at->columns + many - 1) / many * many;
    if (many <= at->columns && (!best || all < least)) best = many, least = all;
  }
  return best;
}

/* A line of windows, so `many` at a time; the last ones end with the line. */
INLINE void line_of_channels(float *out, const float *image, long row, long many, const float *filters, const float *around,
                             const struct window *at, const float *line, float low, float high) {
  for (long first = 0; first < at->columns; first += many) {
    struct columns columns;
    const long begin = first + many <= at->columns ? first : at->columns - many;
    const long x = at->left + begin * at->right, wide = (many - 1) * at->right + OVER;
    float *to = out + begin * at->channels;
    for (long v = 0; v < at->high; v++) {
      const long y = at->top + row * at->down + v * at->lower;
      const float *seen = image + (y * at->width + x) * at->inputs;
      for (long u = 0; u < wide; u++, seen += at->inputs)
        columns.at[v][u] = y < 0 || y >= at->height || x + u < 0 || x + u >= at->width ? around : seen;
    }
#define BESIDE(many, right) \
  case (many)*2 + (right): beside(many, right, to, &columns, filters, at, line, low, high); break;
    switch (many * 2 + at->right) {
      BESIDE(6, 1) BESIDE(6, 2) BESIDE(7, 1) BESIDE(7, 2) BESIDE(8, 1) BESIDE(8, 2)
    }
  }
}

/* Windows of all sizes, `count` of them at some places. */
INLINE void some_of_channels(float *out, long count, const struct places *places, const float *filters, const float *around,
                             const struct window *at, const float *line, float low, float high) {
  const long cells = at->high * at->wide;
  for (long k = 0; k < count; k += TOGETHER)
    for (long before = 0, here; before < cells; before += here) {
      struct seen seen;
      here = cells - before < CELLS ? cells - before : CELLS;
      look(&seen, places->each + k, places->inside[k / TOGETHER], before, here, around, at);
      sums_of_channels(out + k * at->channels, count - k, &seen, before, here, before + here == cells, filters, at, line, low, high);
    }
}

/* For each channel the sum, over the cells of a window, of what a cell sees times its factor; then as `finish`. Filters [high, wide,
 * channels]. What is `wanted` of the sums is taken in while they are in the cache. */
PUBLIC void channel_sums(float *out, const float *image, const float *filters, const float *around, const struct window *at,
                         const float *line, float low, float high, const struct wanted *wanted) {
  const long lines = at->samples * at->rows, positions = lines * at->columns, beside = windows_beside(at);
  struct next next = {0, 0, image};
  struct places places;
  struct summary summary;
  if (wanted) summary = summary_of(wanted);
  for (long start = 0, here; start < positions; start += here, out += here * at->channels) {
    if (beside) {
      const long row = start / at->columns;
      const float *own = image + row / at->rows * at->height * at->width * at->inputs;
      here = at->columns;
      line_of_channels(out, own, row % at->rows, beside, filters, around, at, line, low, high);
    } else {
      here = positions - start < PLACES ? positions - start : PLACES;
      placed(&places, start, &next, at);
      some_of_channels(out, here, &places, filters, around, at, line, low, high);
    }
    if (wanted) take_in(&summary, out, here * at->channels);
  }
}

/* For some filters, a vector of them, the sums at `count` of some places: so many as registers hold. Cells of a line that lie beside
 * each other in the image are one. */
#define FILTERS(name, type)                                                                                         \
  INLINE __attribute__((always_inline)) void name(                                                                  \
      float *out, long count, long many, const struct place *places, int inside, const float *filters,              \
      const float *around, const struct window *at, const float *line, float low, float high) {                     \
    const long size = sizeof(type) / sizeof(float), wide = inside && at->further == 1 ? 1 : at->wide;               \
    const long inputs = wide == at->wide ? at->inputs : at->wide * at->inputs;                                      \
    const type added = *(const type *)line;                                                                         \
    type sums[TOGETHER];                                                                                            \
    _Pragma("unroll") for (int k = 0; k < TOGETHER; k++) sums[k] = -(type){0};                                      \
    for (long v = 0; v < at->high; v++)                                                                             \
      for (long u = 0; u < wide; u++) {                                                                             \
        const float *seen[TOGETHER];                                                                                \
        if (inside) {                                                                                               \
          const long further = (v * at->lower * at->width + u * at->further) * at->inputs;                          \
          _Pragma("unroll") for (int k = 0; k < TOGETHER; k++) seen[k] = places[k].corner + further;                \
        } else {                                                                                                    \
          _Pragma("unroll") for (int k = 0; k < TOGETHER; k++) seen[k] = seen_at(places + k, v, u, around, at);     \
        }                                                                                                           \
        for (long i = 0; i < inputs; i++, filters += size) {                                                        \
          const type factors = *(const type *)filters;                                                              \
          _Pragma("unroll") for (int k = 0; k < TOGETHER; k++) sums[k] += seen[k][i] * factors;                     \
        }                                                                                                           \
      }                                                                                                             \
    _Pragma("unroll") for (int k = 0; k < TOGETHER; k++) {                                                          \
      sums[k] += added;                                                                                             \
      sums[k] = sums[k] <= low ? low : sums[k];                                                                     \
      sums[k] = sums[k] >= high ? high : sums[k];                                                                   \
    }                                                                                                               \
    if (count >= TOGETHER && many >= size) {                                                                        \
      _Pragma("unroll") for (int k = 0; k < TOGETHER; k++, out += at->channels) *(type *)out = sums[k];             \
    } else {                                                                                                        \
      _Pragma("unroll") for (int k = 0; k < TOGETHER; k++, out += at->channels) {                                   \
        if (k >= count) break;                                                                                      \
        for (long j = 0; j < size && j < many; j++) out[j] = sums[k][j];                                            \
      }                                                                                                             \
    }                                                                                                               \
  }

FILTERS(sums_of_many, Lanes)
FILTERS(sums_of_few, Half)

/* For each filter the sum, over the cells of a window and their `inputs` channels, of what is seen times its factor; then as `finish`.
 * Filters [.., high, wide, inputs, LANES], of the last ones LANES / 2 where there are no more, and so many numbers in the line.
 * Places are taken some at a time, so that they are in the cache for all filters. */
PUBLIC void filter_sums(float *out, const float *image, const float *filters, const float *around, const struct window *at,
                        const float *line, float low, float high, const struct wanted *wanted) {
  const long positions = at->samples * at->rows * at->columns, inner = at->high * at->wide * at->inputs;
  struct next next = {0, 0, image};
  struct places places;
  struct summary summary;
  if (wanted) summary = summary_of(wanted);
  for (long start = 0; start < positions; start += PLACES) {
    const long here = positions - start < PLACES ? positions - start : PLACES;
    const float *own = filters;
    placed(&places, start, &next, at);
    for (long channel = 0; channel < at->channels; channel += LANES, own += inner * LANES)
      for (long k = 0; k < here; k += TOGETHER) {
        const long many = at->channels - channel;
        const struct place *first = places.each + k;
        const int inside = places.inside[k / TOGETHER];
        float *to = out + (start + k) * at->channels + channel;
        const float *added = line + channel;
        if (many > LANES / 2) sums_of_many(to, here - k, many, first, inside, own, around, at, added, low, high);
        else sums_of_few(to, here - k, many, first, inside, own, around, at, added, low, high);
      }
    if (wanted) take_in(&summary, out + start * at->channels, here * at->channels);
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
