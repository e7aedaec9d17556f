/* Mathematical functions.
 *
 * A result is what Python can reproduce exactly:
 *   exp                          the device's algorithm, step by step in float
 *   sqrt floor ceil rint         correctly rounded
 *   rsqrt                        sqrt(1 / x) in float, each step rounded; 1 / sqrt(x) for -0 and -inf
 *   log tanh sin cos exp2 erf pow  the C library's double function of the exact argument, rounded once to float
 * 16-bit floats are computed as float and rounded once more.
 */
#ifndef COMPASS_MATH_H
#define COMPASS_MATH_H

#define __COMPASS_LIBM_BY_LANE(X) X(log) X(sin) X(cos) X(exp2)
#define __COMPASS_LIBM_BY_VECTOR(X) X(tanh) X(erf)
#define __COMPASS_LIBM(X) __COMPASS_LIBM_BY_LANE(X) __COMPASS_LIBM_BY_VECTOR(X)
#define X(name) double __compass_##name(double) __attribute__((const));
__COMPASS_LIBM(X)
#undef X
double __compass_pow(double, double) __attribute__((const));

/* exp(x): x = p*ln2 + t, a rational approximation of exp(t), times 2^p. 2^128 is infinite already. */
#define __COMPASS_EXP(F, I)                                                                                       \
  __COMPASS_FN F __compass_exp(F x) {                                                                             \
    I under = x < -0x1.5d589ep+6f, over = x >= 0x1.62e430p+6f, nan = x != x;                                      \
    F a = __COMPASS_PICK(F, I, under | over | nan, (F)0.0f, x);                                                   \
    F nearest = __COMPASS_PICK(F, I, a < 0.0f, (F)-0.5f, (F)0.5f);                                                \
    F p = __builtin_elementwise_trunc(__builtin_elementwise_fma(a, (F)0x1.715476p+0f, nearest));                  \
    F t = __builtin_elementwise_fma(p, (F)-0x1.62e300p-1f, a) - p * 0x1.2fefa2p-17f;                              \
    F s = t * t;                                                                                                  \
    F c = __builtin_elementwise_fma(s, (F)0x1.637698p-25f, (F)-0x1.bbd41cp-20f);                                  \
    c = __builtin_elementwise_fma(s, c, (F)0x1.1566aap-14f);                                                      \
    c = __builtin_elementwise_fma(s, c, (F)-0x1.6c16c2p-9f);                                                      \
    c = __builtin_elementwise_fma(s, c, (F)0x1.555556p-3f);                                                       \
    F v = __builtin_elementwise_fma(s, -c, t);                                                                    \
    F power = __builtin_astype((__builtin_convertvector(p, I) + 127) << 23, F);                                   \
    F y = ((1.0f + t) + (t * v) / (2.0f - v)) * power;                                                            \
    y = __COMPASS_PICK(F, I, over, (F)INFINITY, __COMPASS_PICK(F, I, under, (F)0.0f, y));                         \
    return __COMPASS_PICK(F, I, nan, x, y);                                                                       \
  }                                                                                                               \
  __COMPASS_FN F __compass_rsqrt(F x) {                                                                           \
    I minus = (x == 0.0f) | (x == -INFINITY);                                                                     \
    return __COMPASS_PICK(F, I, minus, 1.0f / __builtin_elementwise_sqrt(x), __builtin_elementwise_sqrt(1.0f / x)); \
  }                                                                                                               \
  __COMPASS_FN F __compass_sqrt(F x) { return __builtin_elementwise_sqrt(x); }                                    \
  __COMPASS_FN F __compass_floor(F x) { return __builtin_elementwise_floor(x); }                                  \
  __COMPASS_FN F __compass_ceil(F x) { return __builtin_elementwise_ceil(x); }                                    \
  __COMPASS_FN F __compass_rint(F x) { return __builtin_elementwise_roundeven(x); }
__COMPASS_EXP(float8, int8)
__COMPASS_EXP(__float16, __int16)

#define __COMPASS_BY_LANE(name, F, L)                                             \
  __COMPASS_FN F __compass_##name(F x) {                                          \
    for (int i = 0; i < L; i++) x[i] = (float)__compass_##name((double)x[i]);     \
    return x;                                                                     \
  }
#define X(name)                                 \
  __COMPASS_BY_LANE(name, float8, 8)            \
  __COMPASS_BY_LANE(name, __float16, 16)
__COMPASS_LIBM_BY_LANE(X)
#undef X
#define __COMPASS_POW(F, L)                                                                         \
  __COMPASS_FN F __compass_pow(F x, F y) {                                                          \
    for (int i = 0; i < L; i++) x[i] = (float)__compass_pow((double)x[i], (double)y[i]);            \
    return x;                                                                                       \
  }
__COMPASS_POW(float8, 8)
__COMPASS_POW(__float16, 16)

/* Functions of whole vectors in double. The value is within 2^-46 of the exact one, as the C library's is, so both round to the
 * same float where all of 2^-44 around it does. Where it does not, about once in 500,000, and for NaN the C library is asked. */
#define __COMPASS_ROUND_AS_LIBM(name, x, y)                                                 \
  float8 low = __builtin_convertvector(y * (1 - 0x1p-44), float8);                          \
  float8 high = __builtin_convertvector(y * (1 + 0x1p-44), float8);                         \
  if (__builtin_reduce_and(low == high)) return low;                                        \
  for (int i = 0; i < 8; i++) x[i] = (float)__compass_##name((double)x[i]);                 \
  return x;

/* tanh: e / (2 - e) with e = 1 - exp(-2|x|) = (1 - 2^k) - 2^k * t, where -2|x| = k * ln 2 + r, and t = exp(r) - 1 is a Taylor
 * series. The last bits of a number that holds k give 2^k by a shift. From 10 on tanh rounds to 1. */
__COMPASS_FN float8 __compass_tanh(float8 x) {
#pragma clang fp contract(fast)
  const double factors[] = {
      1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,       1.0 / 5040,
      1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
  };
  enum { LAST = sizeof factors / sizeof *factors - 1 };
  float8 size = as_float8(as_int8(x) & 0x7fffffff), sign = as_float8((as_int8(x) & (int)0x80000000) | 0x3f800000);
  float8 near = __COMPASS_PICK(float8, int8, size > 10.0f, (float8)10.0f, size);
  __double8 v = __builtin_convertvector(near, __double8) * -2.0, bits = v * 0x1.71547652b82fep+0 + 0x1.8p+52;
  __double8 k = bits - 0x1.8p+52, r = (v - k * 0x1.62e42fefa3800p-1) - k * 0x1.ef35793c76730p-45;
  __double8 power = __builtin_astype((__builtin_astype(bits, __long8) << 52) + 0x3ff0000000000000l, __double8);
  __double8 p = (__double8)factors[LAST];
#pragma clang loop unroll(full)
  for (int i = LAST; i--;) p = p * r + factors[i];
  __double8 t = r * r * p + r, e = (1.0 - power) - power * t;
  __double8 y = e / (2.0 - e) * __builtin_convertvector(sign, __double8);
  __COMPASS_ROUND_AS_LIBM(tanh, x, y)
}

/* erf: x * P(x^2), with P the Chebyshev expansion of erf(sqrt(s)) / sqrt(s) on [0, 16], in powers of s / 8 - 1; from 4 on erf
 * rounds to 1. */
__COMPASS_FN float8 __compass_erf(float8 x) {
#pragma clang fp contract(fast)
  const double powers[] = {
      0x1.6a040781a49a3p-2,  -0x1.69a0ccda3df7cp-3,  0x1.0dabaf0612c6cp-3,  -0x1.b92e95c190666p-4,
      0x1.717efc78c13edp-4,  -0x1.3215d8b7b083fp-4,  0x1.ea97f13613cedp-5,  -0x1.76e8648dfbb57p-5,
      0x1.0ed52cf4b6337p-5,  -0x1.7034faba3c5f0p-6,  0x1.d6350fbe7c7ddp-7,  -0x1.1a0231b85fbe4p-7,
      0x1.3e15f0be3f125p-8,  -0x1.51ef25ec8e0fap-9,  0x1.52cf981ff33a7p-10, -0x1.4158c3c0fc1c8p-11,
      0x1.213e05a48b64dp-12, -0x1.edfac285f40b2p-14, 0x1.8def62c23d8a2p-15, -0x1.34f26ba26e0f8p-16,
      0x1.e52e0d536fa7cp-18, -0x1.5651caf3c9f46p-19, 0x1.4f3009d2ff3d5p-21, -0x1.c0fc172a62ef5p-23,
      0x1.42acb1eec27c8p-23, -0x1.7f41802bd6060p-25,
  };
  enum { LAST = sizeof powers / sizeof *powers - 1 };
  float8 near = __COMPASS_PICK(float8, int8, x > 4.0f, (float8)4.0f, __COMPASS_PICK(float8, int8, x < -4.0f, (float8)-4.0f, x));
  __double8 v = __builtin_convertvector(near, __double8), u = v * v * 0.125 - 1.0, p = (__double8)powers[LAST];
#pragma clang loop unroll(full)
  for (int i = LAST; i--;) p = p * u + powers[i];
  __double8 y = v * p;
  __COMPASS_ROUND_AS_LIBM(erf, x, y)
}

#define X(name)                                                                                              \
  __COMPASS_FN __float16 __compass_##name(__float16 x) {                                                     \
    float8 low = __compass_##name(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7));                    \
    float8 high = __compass_##name(__builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15));             \
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);         \
  }
__COMPASS_LIBM_BY_VECTOR(X)
#undef X

/* Every vector function for the three float types, and every scalar function for float and half. */
#define __COMPASS_MATH(X) \
  X(exp) X(rsqrt) X(sqrt) X(floor) X(ceil) __COMPASS_LIBM(X)
#define __COMPASS_16BIT(name, V) \
  __COMPASS_FN V v##name(V x) { return __compass_narrow(__compass_##name(__compass_float(x)), x); }
#define X(name)                                                                       \
  __COMPASS_FN float8 v##name(float8 x) { return __compass_##name(x); }               \
  __COMPASS_16BIT(name, half16)                                                       \
  __COMPASS_16BIT(name, bf1616)
__COMPASS_MATH(X)
#undef X
#define X(name)                                                                       \
  __COMPASS_FN float name(float x) { return __compass_##name((float8)x)[0]; }         \
  __COMPASS_FN half name(half x) { return (half)name((float)x); }
X(exp) X(rsqrt)
#undef X
#define X(name)                                                                       \
  __COMPASS_FN float name(float x) { return __builtin_##name##f(x); }                 \
  __COMPASS_FN half name(half x) { return (half)name((float)x); }
X(sqrt) X(floor) X(ceil)
#undef X
#define X(name)                                                                       \
  __COMPASS_FN float name(float x) { return (float)__compass_##name((double)x); }     \
  __COMPASS_FN half name(half x) { return (half)name((float)x); }
__COMPASS_LIBM(X)
#undef X
__COMPASS_FN float pow(float x, float y) { return (float)__compass_pow((double)x, (double)y); }
__COMPASS_FN half pow(half x, half y) { return (half)pow((float)x, (float)y); }
__COMPASS_FN float8 vpow(float8 x, float8 y) { return __compass_pow(x, y); }
__COMPASS_FN half16 vpow(half16 x, half16 y) {
  return __compass_narrow(__compass_pow(__compass_float(x), __compass_float(y)), x);
}
__COMPASS_FN bf1616 vpow(bf1616 x, bf1616 y) {
  return __compass_narrow(__compass_pow(__compass_float(x), __compass_float(y)), x);
}

#define X(V, E, L, S, U, B)                                                              \
  __COMPASS_FN V __vrint(V r, V x, B m) {                                                \
    V rounded = __compass_narrow(__compass_rint(__compass_float(x)), x);                 \
    return __COMPASS_SELECT(V, S, m, rounded, r);                                        \
  }
X(half16, half, 16, short16, ushort16, bool16)
X(bf1616, bf16, 16, short16, ushort16, bool16)
#undef X
__COMPASS_UNARY(__vrint, float8, int8, bool8, __compass_rint(x))

/* High half of the product. */
#define __COMPASS_MUL_HI(V, W, bits)                                                                             \
  __COMPASS_FN V vmul_hi(V x, V y) {                                                                             \
    return __builtin_convertvector((__builtin_convertvector(x, W) * __builtin_convertvector(y, W)) >> (W)bits, V); \
  }
__COMPASS_MUL_HI(char32, __short32, 8)
__COMPASS_MUL_HI(uchar32, __ushort32, 8)
__COMPASS_MUL_HI(short16, __int16, 16)
__COMPASS_MUL_HI(ushort16, __uint16, 16)
__COMPASS_MUL_HI(int8, __long8, 32)
__COMPASS_MUL_HI(uint8, __ulong8, 32)

#endif
