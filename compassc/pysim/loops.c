/* Loops of PySim over rows of numbers: the functions of loops.py. Each number is made by the same operations in the same order as in
 * NumPy there, and each of them is rounded, so the bits are the same; what gives a NaN is left to NumPy, for it has a payload. */
#define PUBLIC __attribute__((visibility("default")))
#define MOST_LANES 64

/* e^x by the device's algorithm: `fp.exp` tells it. */
static inline float exp_of(float x) {
  const int normal = x >= -0x1.5d589ep+6f && x < 0x1.62e430p+6f;
  const float a = normal ? x : 0.0f;
  const float p = __builtin_truncf(__builtin_fmaf(a, 0x1.715476p+0f, __builtin_copysignf(0.5f, a)));
  const float t = __builtin_fmaf(p, -0x1.62e300p-1f, a) - p * 0x1.2fefa2p-17f;
  const float s = t * t;
  float c = __builtin_fmaf(s, 0x1.637698p-25f, -0x1.bbd41cp-20f);
  c = __builtin_fmaf(s, c, 0x1.1566aap-14f);
  c = __builtin_fmaf(s, c, -0x1.6c16c2p-9f);
  c = __builtin_fmaf(s, c, 0x1.555556p-3f);
  const float v = __builtin_fmaf(s, -c, t);
  union { int bits; float value; } power = {((int)p + 127) << 23};
  const float y = ((1.0f + t) + (t * v) / (2.0f - v)) * power.value;
  return normal ? y : x < 0.0f ? 0.0f : x > 0.0f ? __builtin_inff() : x;
}

PUBLIC void exp_each(float *restrict out, const float *restrict x, long many) {
  for (long i = 0; i < many; i++) out[i] = exp_of(x[i]);
}

/* out = acc + x @ y, each product fused with the sum, in the order of the depth. Whether a NaN came out. */
PUBLIC int fused_product(float *restrict out, const float *restrict x, const float *restrict y, const float *restrict acc, long rows,
                         long depth, long cols) {
  int strange = 0;
  for (long i = 0; i < rows; i++, out += cols, acc += cols, x += depth) {
    for (long j = 0; j < cols; j++) out[j] = acc[j];
    const float *row = y;
    for (long k = 0; k < depth; k++, row += cols)
      for (long j = 0; j < cols; j++) out[j] = __builtin_fmaf(x[k], row[j], out[j]);
    for (long j = 0; j < cols; j++) strange |= out[j] != out[j];
  }
  return strange;
}

enum { SUM, MAX, MIN };

static inline float joined(float a, float b, int how) {
  return how == SUM ? a + b : (how == MAX ? a > b : a < b) || b != b ? a : b;
}

/* The sums, largest or smallest numbers of rows, joined in the order that `moves.Reduced` tells, by registers of so many lanes. Whether
 * a NaN came out. */
static inline int rows_of(float *out, const float *x, long rows, long cols, long pitch, long native, const int how) {
  const float nothing = how == SUM ? 0.0f : how == MAX ? -__builtin_inff() : __builtin_inff();
  const long wanted = (cols + native - 1) / native, lanes = native * (wanted < 4 ? wanted : 4);
  int strange = 0;
  for (long i = 0; i < rows; i++, x += pitch) {
    float total[MOST_LANES];
    for (long l = 0; l < lanes; l++) total[l] = l < cols ? x[l] : nothing;
    long j = lanes;
    for (; j + lanes <= cols; j += lanes)
      for (long l = 0; l < lanes; l++) total[l] = joined(total[l], x[j + l], how);
    if (j < cols)
      for (long l = 0; l < lanes; l++) total[l] = joined(total[l], j + l < cols ? x[j + l] : nothing, how);
    for (long parts = lanes / native; parts > 1; parts = (parts + 1) / 2)
      for (long part = 0; part < parts; part += 2)
        for (long l = 0; l < native; l++)
          total[part / 2 * native + l] =
              part + 1 < parts ? joined(total[part * native + l], total[(part + 1) * native + l], how) : total[part * native + l];
    long left = native;
    if (how != SUM || left == 16)
      do {
        left /= 2;
        for (long l = 0; l < left; l++) total[l] = joined(total[l], total[l + left], how);
      } while (how != SUM && left > 1);
    for (; left > 1; left /= 2)
      for (long l = 0; l < left / 2; l++) total[l] = total[2 * l] + total[2 * l + 1];
    out[i] = how == SUM ? 0.0f + total[0] : total[0];
    strange |= out[i] != out[i];
  }
  return strange;
}

#define ROWS(name, how)                                                                                    \
  PUBLIC int name(float *out, const float *x, long rows, long cols, long pitch, long native) {             \
    return rows_of(out, x, rows, cols, pitch, native, how);                                                \
  }
ROWS(rows_sum, SUM)
ROWS(rows_max, MAX)
ROWS(rows_min, MIN)
