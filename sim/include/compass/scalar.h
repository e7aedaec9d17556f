/* Scalar functions. */
#ifndef COMPASS_SCALAR_H
#define COMPASS_SCALAR_H

#define MIN(x, y) ((x) < (y) ? (x) : (y))

/* X(type, unsigned type of the same width, bits) */
#define __COMPASS_SIGNED_SCALARS(X) X(char, uchar, 8) X(short, ushort, 16) X(int, uint, 32)
#define __COMPASS_UNSIGNED_SCALARS(X) X(uchar, uchar, 8) X(ushort, ushort, 16) X(uint, uint, 32)
#define __COMPASS_FLOAT_SCALARS(X) X(half, ushort, 16) X(bf16, ushort, 16) X(float, uint, 32)

#define X(T, U, bits)                                                                             \
  __COMPASS_FN T max(T x, T y) { return x > y ? x : y; }                                          \
  __COMPASS_FN T min(T x, T y) { return x < y ? x : y; }                                          \
  __COMPASS_FN T ceildiv(T x, T y) {                                                              \
    T n = (T)((T)(x + y) - 1);                                                                    \
    __COMPASS_NOT_BY_ZERO(y == (T)0)                                                              \
    return y == (T)0 ? (T)0 : (T)-1 < (T)0 && y == (T)-1 ? (T)((T)0 - n) : (T)(n / y);            \
  }                                                                                               \
  __COMPASS_FN T clz(T x) { return (T)((U)x ? __builtin_clz((uint)(U)x) - (32 - bits) : bits); }
__COMPASS_SIGNED_SCALARS(X)
__COMPASS_UNSIGNED_SCALARS(X)
#undef X

#define X(T, U, bits) \
  __COMPASS_FN T __abs(T x) { return (T)(x < 0 ? 0 - x : x); }
__COMPASS_SIGNED_SCALARS(X)
#undef X
#define X(T, U, bits) \
  __COMPASS_FN T __abs(T x) { return x; }
__COMPASS_UNSIGNED_SCALARS(X)
#undef X

/* What is called in the place of C's `/` and `%` (compass_core/hostcc/divisions.py). Of integers both are 0 where y is 0, and
 * the least number by -1 is itself. X(result, types of the operands) */
#define __COMPASS_INTEGER_DIVISIONS(X)                                                \
  X(int, int, int) X(uint, int, uint) X(uint, uint, int) X(uint, uint, uint)          \
  X(long, int, long) X(long, long, int) X(long, uint, long) X(long, long, uint)       \
  X(long, long, long) X(ulong, int, ulong) X(ulong, ulong, int) X(ulong, uint, ulong) \
  X(ulong, ulong, uint) X(ulong, long, ulong) X(ulong, ulong, long) X(ulong, ulong, ulong)
#define __COMPASS_REAL_DIVISIONS(X)                                              \
  X(half, half, half) X(half, half, int) X(half, int, half) X(half, half, uint)  \
  X(half, uint, half) X(float, float, float) X(float, float, int)                \
  X(float, int, float) X(float, float, uint) X(float, uint, float)               \
  X(float, half, float) X(float, float, half) X(bf16, bf16, bf16)                \
  X(float8, float8, float8) X(half16, half16, half16) X(bf1616, bf1616, bf1616)
#define X(T, A, B)                                                            \
  __COMPASS_FN T __compass_quotient(A a, B b) {                               \
    T x = (T)a, y = (T)b;                                                     \
    __COMPASS_NOT_BY_ZERO(y == (T)0)                                          \
    return y == (T)0 ? (T)0 : (T)-1 < (T)0 && y == (T)-1 ? (T)0 - x : x / y;  \
  }                                                                           \
  __COMPASS_FN T __compass_remainder(A a, B b) {                              \
    T x = (T)a, y = (T)b;                                                     \
    __COMPASS_NOT_BY_ZERO(y == (T)0)                                          \
    return y == (T)0 || ((T)-1 < (T)0 && y == (T)-1) ? (T)0 : x % y;          \
  }
__COMPASS_INTEGER_DIVISIONS(X)
#undef X
#define X(T, A, B) \
  __COMPASS_FN T __compass_quotient(A x, B y) { return x / y; }
__COMPASS_REAL_DIVISIONS(X)
#undef X

/* Of a number and a NaN, max and min return the number, as the vector forms do. */
#define X(T, U, bits)                                                                             \
  __COMPASS_FN T max(T x, T y) { return x > y || y != y ? x : y; }                                \
  __COMPASS_FN T min(T x, T y) { return x < y || y != y ? x : y; }                                \
  __COMPASS_FN T __abs(T x) {                                                                     \
    return __builtin_astype((U)(__builtin_astype(x, U) & (U)~((U)1 << (bits - 1))), T);           \
  }                                                                                               \
  __COMPASS_FN T __rint(T x) { return (T)__builtin_roundevenf((float)x); }
__COMPASS_FLOAT_SCALARS(X)
#undef X
__COMPASS_FN float __fma(float acc, float x, float y) { return __builtin_fmaf(x, y, acc); }

/* The class bit of each lane, from the bits of the value: M mantissa bits, E all-ones exponent, both in place. */
#define __COMPASS_CLASS(V, S, sign, exponent, mantissa, quiet)                                            \
  S bits = __builtin_astype(x, S), negative = bits < (S)0, size = bits & (S)~sign;                        \
  S kind = size == (S)0 ? (S)0x40                                                                         \
                        : (size < (S)(mantissa + 1) ? (S)0x80 : (size < (S)exponent ? (S)0x100 : (S)0x200)); \
  S mirrored = size == (S)0 ? (S)0x20                                                                     \
                            : (size < (S)(mantissa + 1) ? (S)0x10 : (size < (S)exponent ? (S)0x8 : (S)0x4)); \
  S nan = (bits & (S)quiet) != (S)0 ? (S)0x2 : (S)0x1;                                                    \
  S result = size > (S)exponent ? nan : (negative ? mirrored : kind);
#define __COMPASS_VCLASS(V, S, B, sign, exponent, mantissa, quiet)        \
  __COMPASS_FN S __vclass(S r, V x, B m) {                                \
    __COMPASS_CLASS(V, S, sign, exponent, mantissa, quiet)                \
    return __COMPASS_SELECT(S, S, m, result, r);                          \
  }
__COMPASS_VCLASS(half16, short16, bool16, (short)0x8000, (short)0x7c00, (short)0x03ff, (short)0x0200)
__COMPASS_VCLASS(bf1616, short16, bool16, (short)0x8000, (short)0x7f80, (short)0x007f, (short)0x0040)
__COMPASS_VCLASS(float8, int8, bool8, (int)0x80000000, 0x7f800000, 0x007fffff, 0x00400000)
__COMPASS_FN int __class(half x) { return __vclass((short16)(short)0, (half16)x, (bool16)(char)-1)[0]; }
__COMPASS_FN int __class(float x) { return __vclass((int8)0, (float8)x, (bool8)(char)-1)[0]; }

#endif
