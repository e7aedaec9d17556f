/* Casts between element types, widening, narrowing shifts. */
#ifndef COMPASS_CONVERT_H
#define COMPASS_CONVERT_H

/* Sign or zero extension of the low / high half. The second step extends all lanes, then takes half of them: so both
 * steps from 8 to 32 bits become one extension, and what is not taken costs nothing. */
#define __COMPASS_EXTEND(prefix, V1, V2, V4, WIDE)                                          \
  __COMPASS_FN V2 prefix##l(V1 x) { return __builtin_convertvector(x.lo, V2); }             \
  __COMPASS_FN V2 prefix##h(V1 x) { return __builtin_convertvector(x.hi, V2); }             \
  __COMPASS_FN V4 prefix##l(V2 x) { return __builtin_convertvector(x, WIDE).lo; }           \
  __COMPASS_FN V4 prefix##h(V2 x) { return __builtin_convertvector(x, WIDE).hi; }
__COMPASS_EXTEND(__vsxt, char32, short16, int8, __int16)
__COMPASS_EXTEND(__vuxt, uchar32, ushort16, uint8, __uint16)

/* Even / odd lanes of an integer vector in twice the width. */
#define __COMPASS_SPREAD(V, R, bits)                                                            \
  __COMPASS_FN R __compass_even(V x) { return (__builtin_astype(x, R) << (R)bits) >> (R)bits; } \
  __COMPASS_FN R __compass_odd(V x) { return __builtin_astype(x, R) >> (R)bits; }
__COMPASS_SPREAD(char32, short16, 8)
__COMPASS_SPREAD(uchar32, ushort16, 8)
__COMPASS_SPREAD(short16, int8, 16)
__COMPASS_SPREAD(ushort16, uint8, 16)

/* float -> bfloat16: nearest even on bits, NaN stays a quiet NaN, subnormals are kept (a host's own conversion
 * instruction flushes them). */
#define __COMPASS_TO_BF16(F, I, H, R)                                                                     \
  __COMPASS_FN R __compass_bf16(F x) {                                                                    \
    I bits = __builtin_astype(x, I);                                                                      \
    I rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;                                           \
    I quiet = (bits >> 16u) | 0x40u;                                                                      \
    return __builtin_astype(__builtin_convertvector((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded, H), R); \
  }
__COMPASS_TO_BF16(float8, uint8, __ushort8, __bf168)
__COMPASS_TO_BF16(__float16, __uint16, ushort16, bf1616)

/* 16-bit floats <-> float, exact one way, nearest even the other way. */
__COMPASS_FN __float16 __compass_float(half16 x) { return __builtin_convertvector(x, __float16); }
__COMPASS_FN __float16 __compass_float(bf1616 x) { return __compass_ordered(x); }
__COMPASS_FN float8 __compass_float(__half8 x) { return __builtin_convertvector(x, float8); }
__COMPASS_FN float8 __compass_float(__bf168 x) {
  return as_float8(__builtin_convertvector(__builtin_astype(x, __ushort8), uint8) << 16u);
}
__COMPASS_FN half16 __compass_narrow(__float16 x, half16 like) { return __builtin_convertvector(x, half16); }
__COMPASS_FN bf1616 __compass_narrow(__float16 x, bf1616 like) { return __compass_bf16(x); }

#define __COMPASS_EVEN_16(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14)
#define __COMPASS_ODD_16(x, y) __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15)

/* A float outside int's range goes to the nearest end of it; NaN goes to 0. `x` is already a whole number or is cut. */
#ifdef __AVX__ /* whose instruction gives the lowest int for all that does not fit */
__COMPASS_FN int8 __compass_saturate(float8 x) {
  int8 value = __builtin_ia32_cvttps2dq256(x);
  return x != x ? (int8)0 : (x >= 0x1p+31f ? (int8)2147483647 : value);
}
#else
__COMPASS_FN int8 __compass_saturate(float8 x) {
  int8 low = x < -0x1p+31f, high = x >= 0x1p+31f;
  float8 inside = __COMPASS_PICK(float8, int8, low | high | (x != x), (float8)0.0f, x);
  int8 value = __builtin_convertvector(inside, int8);
  return low ? (int8)(-2147483647 - 1) : (high ? (int8)2147483647 : value);
}
#endif
__COMPASS_FN int8 convert_int8(float8 x) { return __compass_saturate(x); }

__COMPASS_FN float8 __vcvt(int8 x) { return __builtin_convertvector(x, float8); }
__COMPASS_FN int8 __vcvt(float8 x) { return __compass_saturate(__builtin_elementwise_roundeven(x)); }
__COMPASS_FN bf1616 __vcvt(half16 x) { return __compass_bf16(__compass_float(x)); }
__COMPASS_FN half16 __vcvt(bf1616 x) { return __builtin_convertvector(__compass_float(x), half16); }

/* int -> float that can be rounded again without error: bits that do not fit leave a mark in the last bit kept. */
__COMPASS_FN float8 __compass_sticky_float(int8 x) {
  __ulong8 bits = __builtin_astype(__builtin_convertvector(x, __double8), __ulong8);
  __ulong8 lost = __builtin_astype((bits & 0x1ffffffful) != 0ul, __ulong8) & 0x20000000ul;
  return __builtin_convertvector(__builtin_astype((bits & ~0x1ffffffful) | lost, __double8), float8);
}
__COMPASS_FN __float16 __compass_join(float8 x, float8 y) { return (__float16)(x, y); }
__COMPASS_FN half16 __vcvtd(float8 x, float8 y) { return __builtin_convertvector(__compass_join(x, y), half16); }
__COMPASS_FN half16 __vcvtd(int8 x, int8 y) { return __vcvtd(__compass_sticky_float(x), __compass_sticky_float(y)); }
__COMPASS_FN bf1616 __vcvtd_tbf16(float8 x, float8 y) { return __compass_bf16(__compass_join(x, y)); }
__COMPASS_FN bf1616 __vcvtd_tbf16(int8 x, int8 y) {
  return __vcvtd_tbf16(__compass_sticky_float(x), __compass_sticky_float(y));
}

/* Lanes are chosen after the conversion: zipping even and odd ones, the way to low and high ones, then costs nothing. */
#define __COMPASS_WIDEN(suffix, V, FLOATS)                                                    \
  __COMPASS_FN float8 __vcvtu##suffix##_tfp32(V x) { return FLOATS; }                         \
  __COMPASS_FN int8 __vcvtu##suffix##_tw(V x) {                                               \
    return __compass_saturate(__builtin_elementwise_roundeven(__vcvtu##suffix##_tfp32(x)));   \
  }
#define __COMPASS_WIDENS(V)                                                                \
  __COMPASS_WIDEN(e, V, __COMPASS_EVEN_16(__compass_float(x.lo), __compass_float(x.hi)))   \
  __COMPASS_WIDEN(o, V, __COMPASS_ODD_16(__compass_float(x.lo), __compass_float(x.hi)))    \
  __COMPASS_WIDEN(l, V, __compass_float(x.lo))                                             \
  __COMPASS_WIDEN(h, V, __compass_float(x.hi))
__COMPASS_WIDENS(half16)
__COMPASS_WIDENS(bf1616)

/* Narrowing shift right: lane q*k of the result is the shifted lane k, every other lane and every inactive lane is 0.
 * So the result is, bit for bit, the shifted vector cut to the narrow width within each wide lane. */
#define __COMPASS_NSR(name, R, X1, U, B, SHIFT, CLAMP, cut)                                                  \
  __COMPASS_FN R name(X1 x, U s, B m) {                                                                      \
    X1 value = SHIFT(x, s);                                                                                  \
    value = CLAMP;                                                                                           \
    U active = __builtin_astype(__COMPASS_COND(__compass_signed_##U, m), U);                                 \
    return __builtin_astype(__builtin_astype(value, U) & (U)cut & active, R);                                \
  }
typedef short16 __compass_signed_ushort16;
typedef int8 __compass_signed_uint8;
#define __COMPASS_MAX_OF(x, lo) __builtin_elementwise_max(x, lo)
#define __COMPASS_MIN_OF(x, hi) __builtin_elementwise_min(x, hi)
#define __COMPASS_INTO(X1, E1, lo, hi) __COMPASS_MIN_OF(__COMPASS_MAX_OF(value, (X1)(E1)(lo)), (X1)(E1)(hi))
#define __COMPASS_BELOW(X1, E1, hi) __COMPASS_MIN_OF(value, (X1)(E1)(hi))
/* All forms of one width: h is "" for an 8-bit result and _h for a 16-bit one. */
#define __COMPASS_NSR_ROUND(a, l, S1, ES, U1, EU, B, h, RS, RU, lo, hi, uhi, r, SHIFT)                       \
  __COMPASS_NSR(a##r##h, RS, S1, U1, B, SHIFT, value, uhi)                                                   \
  __COMPASS_NSR(a##s##r##h##_s, RS, S1, U1, B, SHIFT, __COMPASS_INTO(S1, ES, lo, hi), uhi)                   \
  __COMPASS_NSR(a##s##r##h##_u, RU, S1, U1, B, SHIFT, __COMPASS_INTO(S1, ES, 0, uhi), uhi)                   \
  __COMPASS_NSR(l##r##h, RU, U1, U1, B, SHIFT, value, uhi)                                                   \
  __COMPASS_NSR(l##s##r##h##_s, RS, U1, U1, B, SHIFT, __COMPASS_BELOW(U1, EU, hi), uhi)                      \
  __COMPASS_NSR(l##s##r##h##_u, RU, U1, U1, B, SHIFT, __COMPASS_BELOW(U1, EU, uhi), uhi)
#define __COMPASS_NSR_ALL(S1, ES, U1, EU, B, h, RS, RU, lo, hi, uhi)                                                   \
  __COMPASS_NSR_ROUND(__vnsra, __vnsrl, S1, ES, U1, EU, B, h, RS, RU, lo, hi, uhi, , __compass_shr)                    \
  __COMPASS_NSR_ROUND(__vnsra, __vnsrl, S1, ES, U1, EU, B, h, RS, RU, lo, hi, uhi, r, __compass_round_shr)
__COMPASS_NSR_ALL(short16, short, ushort16, ushort, bool16, , char32, uchar32, -128, 127, 255)
__COMPASS_NSR_ALL(int8, int, uint8, uint, bool8, , char32, uchar32, -128, 127, 255)
__COMPASS_NSR_ALL(int8, int, uint8, uint, bool8, _h, short16, ushort16, -32768, 32767, 65535)

/* Two or four vectors that are narrowed with saturation, all lanes of them, and joined: hosts have instructions that do both,
 * of each half of a vector by itself. w: of four vectors, and what only shifts; p: of two. */
#ifdef __AVX2__
#define __COMPASS_SHIFTED(name, h, S, U, B, SHIFT)                                                              \
  __COMPASS_FN S name##h##_s(S x, U s, B m) { return SHIFT(x, s); }                                             \
  __COMPASS_FN U name##h##_u(S x, U s, B m) { return __builtin_astype(SHIFT(x, s), U); }
#define __COMPASS_SHIFTS(h, S, U, B)                              \
  __COMPASS_SHIFTED(__wnsras, h, S, U, B, __compass_shr)          \
  __COMPASS_SHIFTED(__wnsrasr, h, S, U, B, __compass_round_shr)
__COMPASS_SHIFTS(, int8, uint8, bool8)
__COMPASS_SHIFTS(_h, int8, uint8, bool8)
__COMPASS_SHIFTS(, short16, ushort16, bool16)
#define __COMPASS_PACK(name, R, V, L, instruction, order)                                                       \
  __COMPASS_FN R name(V x, V y) {                                                                               \
    __compass_v##L a = __builtin_astype(x, __compass_v##L), b = __builtin_astype(y, __compass_v##L);            \
    return __builtin_astype(order(as_int8(instruction(a, b))), R);                                              \
  }
#define __COMPASS_AS_PACKED(x) (x)
__COMPASS_FN int8 __compass_order_of_two(int8 x) { return __builtin_shufflevector(x, x, 0, 1, 4, 5, 2, 3, 6, 7); }
__COMPASS_FN int8 __compass_order_of_four(int8 x) { return __builtin_shufflevector(x, x, 0, 4, 1, 5, 2, 6, 3, 7); }
__COMPASS_PACK(__wexte, short16, int8, 8, __builtin_ia32_packssdw256, __COMPASS_AS_PACKED)
__COMPASS_PACK(__wexte, ushort16, uint8, 8, __builtin_ia32_packssdw256, __COMPASS_AS_PACKED)
__COMPASS_PACK(__wexte, char32, short16, 16, __builtin_ia32_packsswb256, __compass_order_of_four)
__COMPASS_PACK(__wexte, uchar32, ushort16, 16, __builtin_ia32_packuswb256, __compass_order_of_four)
__COMPASS_PACK(__pexte, short16, int8, 8, __builtin_ia32_packssdw256, __compass_order_of_two)
__COMPASS_PACK(__pexte, ushort16, uint8, 8, __builtin_ia32_packusdw256, __compass_order_of_two)
__COMPASS_PACK(__pexte, char32, short16, 16, __builtin_ia32_packsswb256, __compass_order_of_two)
__COMPASS_PACK(__pexte, uchar32, ushort16, 16, __builtin_ia32_packuswb256, __compass_order_of_two)
#else
#define __pexte __vexte
#define __wexte __vexte
#define __wnsras_s __vnsras_s
#define __wnsras_u __vnsras_u
#define __wnsrasr_s __vnsrasr_s
#define __wnsrasr_u __vnsrasr_u
#define __wnsras_h_s __vnsras_h_s
#define __wnsras_h_u __vnsras_h_u
#define __wnsrasr_h_s __vnsrasr_h_s
#define __wnsrasr_h_u __vnsrasr_h_u
#endif

#endif
