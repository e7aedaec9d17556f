/* Element-wise arithmetic and shifts. Integer results wrap unless the name says otherwise. */
#ifndef COMPASS_ARITH_H
#define COMPASS_ARITH_H

#define X(V, E, L, S, U, B)                   \
  __COMPASS_BINARY(__vadd, V, S, B, x + y)    \
  __COMPASS_BINARY(__vsub, V, S, B, x - y)
__COMPASS_ALL(X)
#undef X
#define X(V, E, L, S, U, B) __COMPASS_BINARY(__vmul, V, S, B, x *y)
__COMPASS_FLOATS(X)
#undef X

/* Minimum and maximum. Of a number and a NaN the device returns the number. */
#define __COMPASS_FLOAT_WHERE(V, S, x, op, y, yes, no) \
  __COMPASS_PICK(V, S, __builtin_convertvector(__compass_ordered(x) op __compass_ordered(y), S), yes, no)
/* x where it is the greater (lesser) one, else y, also where one of them is NaN: what the host's instruction does. */
#define X(V, E, L, S, U, B)                                                                                            \
  __COMPASS_FN V __compass_greater(V x, V y) { return __COMPASS_FLOAT_WHERE(V, S, x, >, y, x, y); }                    \
  __COMPASS_FN V __compass_lesser(V x, V y) { return __COMPASS_FLOAT_WHERE(V, S, x, <, y, x, y); }
#ifdef __AVX__
__COMPASS_FN float8 __compass_greater(float8 x, float8 y) { return __builtin_ia32_maxps256(x, y); }
__COMPASS_FN float8 __compass_lesser(float8 x, float8 y) { return __builtin_ia32_minps256(x, y); }
#else
X(float8, float, 8, int8, uint8, bool8)
#endif
#if defined(__AVX512FP16__) && defined(__AVX512VL__)
__COMPASS_FN half16 __compass_greater(half16 x, half16 y) { return __builtin_ia32_maxph256(x, y); }
__COMPASS_FN half16 __compass_lesser(half16 x, half16 y) { return __builtin_ia32_minph256(x, y); }
#else
X(half16, half, 16, short16, ushort16, bool16)
#endif
X(bf1616, bf16, 16, short16, ushort16, bool16)
#undef X
#define X(V, E, L, S, U, B)                                                                 \
  __COMPASS_FN V __compass_max(V x, V y) { return __builtin_elementwise_max(x, y); }        \
  __COMPASS_FN V __compass_min(V x, V y) { return __builtin_elementwise_min(x, y); }
__COMPASS_INTS(X)
#undef X
#define X(V, E, L, S, U, B)                                                                                            \
  __COMPASS_FN V __compass_max(V x, V y) { return __COMPASS_FLOAT_WHERE(V, S, y, ==, y, __compass_greater(x, y), x); } \
  __COMPASS_FN V __compass_min(V x, V y) { return __COMPASS_FLOAT_WHERE(V, S, y, ==, y, __compass_lesser(x, y), x); }
__COMPASS_FLOATS(X)
#undef X
#define X(V, E, L, S, U, B)                                \
  __COMPASS_BINARY(__vmax, V, S, B, __compass_max(x, y))   \
  __COMPASS_BINARY(__vmin, V, S, B, __compass_min(x, y))
__COMPASS_ALL(X)
#undef X

/* Absolute value. */
#define X(V, E, L, S, U, B)                                                                                       \
  __COMPASS_FN U __vabs(U r, V x, B m) {                                                                          \
    return __COMPASS_SELECT(U, S, m, __builtin_astype(__builtin_elementwise_abs(x), U), r);                       \
  }                                                                                                               \
  __COMPASS_UNARY(__vabs, U, S, B, x)                                                                             \
  __COMPASS_UNARY(__vabss, V, S, B, __compass_max(x, __builtin_elementwise_sub_sat((V)(E)0, x)))                  \
  __COMPASS_UNARY(__vabss, U, S, B, x)
__COMPASS_SIGNED(X)
#undef X
#define __COMPASS_NO_SIGN(V, S, L, x) \
  __builtin_astype(__builtin_astype((x), S) & ((S)-1 ^ ((S)1 << (S)(256 / (L) - 1))), V)
#define X(V, E, L, S, U, B) __COMPASS_UNARY(__vabs, V, S, B, __COMPASS_NO_SIGN(V, S, L, x))
__COMPASS_FLOATS(X)
#undef X

/* Saturating sum and difference. With operands of one type the host has instructions; with mixed signs the exact
 * value is made in the double width W and clamped to [lo, hi]. */
#define X(V, E, L, S, U, B)                                                   \
  __COMPASS_BINARY(__vadds, V, S, B, __builtin_elementwise_add_sat(x, y))     \
  __COMPASS_BINARY(__vsubs, V, S, B, __builtin_elementwise_sub_sat(x, y))     \
  __COMPASS_FN V __vaddh(V x, V y) { return __builtin_elementwise_add_sat(__vexte(x, y), __vexto(x, y)); } \
  __COMPASS_FN V __vsubh(V x, V y) { return __builtin_elementwise_sub_sat(__vexte(x, y), __vexto(x, y)); } \
  __COMPASS_FN V __vmaxh(V x, V y) { return __compass_max(__vexte(x, y), __vexto(x, y)); }                 \
  __COMPASS_FN V __vminh(V x, V y) { return __compass_min(__vexte(x, y), __vexto(x, y)); }
__COMPASS_INTS(X)
#undef X
#define X(V, E, L, S, U, B)                                                   \
  __COMPASS_FN V __vaddh(V x, V y) { return __vexte(x, y) + __vexto(x, y); }  \
  __COMPASS_FN V __vsubh(V x, V y) { return __vexte(x, y) - __vexto(x, y); }
__COMPASS_FLOATS(X)
#undef X

#define __COMPASS_CLAMP(W, x, lo, hi) __builtin_elementwise_min(__builtin_elementwise_max((x), (W)(lo)), (W)(hi))
#define __COMPASS_MIXED_OP(name, op, T, X1, Y1, S, W, B, lo, hi)                                           \
  __COMPASS_FN T name(T r, X1 x, Y1 y, B m) {                                                              \
    W exact = __builtin_convertvector(x, W) op __builtin_convertvector(y, W);                              \
    return __COMPASS_SELECT(T, S, m, __builtin_convertvector(__COMPASS_CLAMP(W, exact, lo, hi), T), r);    \
  }
#define __COMPASS_MIXED(T, X1, Y1, S, W, B, lo, hi)                  \
  __COMPASS_MIXED_OP(__vadds, +, T, X1, Y1, S, W, B, lo, hi)         \
  __COMPASS_MIXED_OP(__vsubs, -, T, X1, Y1, S, W, B, lo, hi)
#define __COMPASS_MIXED_WIDTH(S, U, W, B, LO, HI, UHI)  \
  __COMPASS_MIXED(S, S, U, S, W, B, LO, HI)             \
  __COMPASS_MIXED(S, U, S, S, W, B, LO, HI)             \
  __COMPASS_MIXED(S, U, U, S, W, B, LO, HI)             \
  __COMPASS_MIXED(U, S, S, S, W, B, 0, UHI)             \
  __COMPASS_MIXED(U, S, U, S, W, B, 0, UHI)             \
  __COMPASS_MIXED(U, U, S, S, W, B, 0, UHI)
__COMPASS_MIXED_WIDTH(char32, uchar32, __short32, bool32, (short)-128, (short)127, (short)255)
__COMPASS_MIXED_WIDTH(short16, ushort16, __int16, bool16, -32768, 32767, 65535)
__COMPASS_MIXED_WIDTH(int8, uint8, __long8, bool8, -2147483647l - 1, 2147483647l, 4294967295l)

/* Integer division through floating point F, which holds the operands exactly and whose rounding cannot reach the next
 * whole quotient. Trivial divisors are 0, which gives 0 (checked runs tell it, but not of lanes in which both are 0:
 * masked loads leave such), and -1, which negates and saturates: ~x is one less than -x, and the largest value of the
 * least one. `%` of vectors is called as that of scalars is (scalar.h). */
#define __COMPASS_QUOTIENT(V, F, x, y) \
  __builtin_convertvector(__builtin_convertvector(x, F) / __builtin_convertvector(y, F), V)
#define __COMPASS_DIVIDE(V, E, S, B, F, minus_one, least)                                                    \
  __COMPASS_FN V __vdiv(V r, V x, V y, B m) {                                                                \
    __COMPASS_NOT_BY_ZERO(__builtin_reduce_or((y == (V)(E)0) & (x != (V)(E)0) & __COMPASS_COND(S, m)))        \
    S trivial = __builtin_astype((y == (V)(E)0) | (y == (V)(E)(minus_one)), S);                              \
    V quotient = __COMPASS_QUOTIENT(V, F, x, __COMPASS_PICK(V, S, trivial, (V)(E)1, y));                     \
    V negated = (~x - __builtin_astype(x != (V)(E)(least), V)) & y;                                          \
    return __COMPASS_SELECT(V, S, m, __COMPASS_PICK(V, S, trivial, negated, quotient), r);                   \
  }                                                                                                          \
  __COMPASS_FN V __vmod(V r, V x, V y, B m) {                                                                \
    __COMPASS_NOT_BY_ZERO(__builtin_reduce_or((y == (V)(E)0) & (x != (V)(E)0) & __COMPASS_COND(S, m)))        \
    S trivial = __builtin_astype((y == (V)(E)0) | (y == (V)(E)(minus_one)), S);                              \
    V safe = __COMPASS_PICK(V, S, trivial, (V)(E)1, y);                                                      \
    return __COMPASS_SELECT(V, S, m, x - safe * __COMPASS_QUOTIENT(V, F, x, safe), r)    ;                   \
  }                                                                                                          \
  __COMPASS_FN V __compass_remainder(V x, V y) { return __vmod(x, x, y, (B)(char)-1); }
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-builtins"
__COMPASS_DIVIDE(char32, char, char32, bool32, __float32, -1, -128)
__COMPASS_DIVIDE(uchar32, uchar, char32, bool32, __float32, 0, 0)
__COMPASS_DIVIDE(short16, short, short16, bool16, __float16, -1, -32768)
__COMPASS_DIVIDE(ushort16, ushort, short16, bool16, __float16, 0, 0)
__COMPASS_DIVIDE(int8, int, int8, bool8, __double8, -1, -2147483647 - 1)
__COMPASS_DIVIDE(uint8, uint, int8, bool8, __double8, 0, 0)
#pragma clang diagnostic pop
__COMPASS_BINARY(__vdiv, float8, int8, bool8, x / y)

/* One rounding: acc + x * y. */
__COMPASS_FN float8 __vfma(float8 acc, float8 x, float8 y, bool8 m) {
  return __COMPASS_SELECT(float8, int8, m, __builtin_elementwise_fma(x, y, acc), acc);
}

/* Shifts. The amount `s` is read as unsigned; V is the shifted type, A its unsigned counterpart. */
#define X(V, E, L, S, U, B)                                                                                     \
  __COMPASS_FN V __compass_shl(V x, U s) {                                                                      \
    return __COMPASS_PICK(V, S, __builtin_astype(s < (U)(256 / L), S), x << __builtin_astype(s, V), (V)(E)0);   \
  }
__COMPASS_INTS(X)
#undef X
#define X(V, E, L, S, U, B)                                                                        \
  __COMPASS_FN V __compass_shr(V x, U s) {                                                         \
    return x >> __builtin_astype(__builtin_elementwise_min(s, (U)(256 / L - 1)), V);               \
  }
__COMPASS_SIGNED(X)
#undef X
#define X(V, E, L, S, U, B)                                                                        \
  __COMPASS_FN V __compass_shr(V x, U s) {                                                         \
    return __COMPASS_PICK(V, S, __builtin_astype(s < (U)(256 / L), S), x >> s, (V)(E)0);           \
  }
__COMPASS_UNSIGNED(X)
#undef X
/* round_even(x / 2^s): the shifted value, plus one when the bits shifted out are more than a half, or a half and the
 * value is odd. What depends on `s` alone is computed once, where it is the same in all lanes and rounds. Of signed
 * values, shifts by the width or more give 0: the shifted value is 0 or -1 then, and -1 is always rounded up. Of unsigned
 * ones, a shift by the width gives 0 or 1; they are compared as signed numbers, for which hosts have an instruction. */
#define __COMPASS_ROUND_SIGNED(V, E, L, S, U, B)                                                          \
  __COMPASS_FN V __compass_round_shr(V x, U s) {                                                          \
    V value = __compass_shr(x, s), unit = __compass_shl((V)(E)1, s);                                      \
    V middle = __builtin_astype(__builtin_astype(unit, U) >> (U)1, V) - __builtin_astype(s == (U)0, V);   \
    V rest = x & (unit + (unit != (V)(E)0));                                                              \
    return value - (rest > middle - (value & (V)(E)1));                                                   \
  }
#define __COMPASS_ROUND_UNSIGNED(V, E, L, S, U, B)                                                        \
  __COMPASS_FN V __compass_round_shr(V x, U s) {                                                          \
    V value = __compass_shr(x, s), lowest = (V)1 << (V)(256 / L - 1), place = s - (V)1;                    \
    V middle = __COMPASS_PICK(V, S, __builtin_astype(place >= (V)(256 / L), S), (V)-1, (V)1 << place);    \
    V rest = x & (__compass_shl((V)1, s) - (V)1);                                                         \
    S left = __builtin_astype(rest ^ lowest, S), limit = __builtin_astype(middle ^ lowest, S);            \
    return value - __builtin_astype(left > limit - __builtin_astype(value & (V)1, S), V);                 \
  }
/* Where hosts rotate lanes: then the bits shifted out are at the top and the lowest one of the value is at the bottom, so
 * that one comparison tells. Beyond the width, the sign tells for signed values, and nothing for unsigned ones. clang does
 * not see that `one` is 1, for it would make numbers of the comparison's result before adding them. */
#define __COMPASS_ROUND_ROTATED(V, E, L, S, U, by, past, kept_past, limit_past)                           \
  __COMPASS_FN V __compass_round_shr(V x, U s) {                                                          \
    V value = __compass_shr(x, s), one = (V)(E)1;                                                         \
    U bits = __builtin_astype(x, U), middle = (U)1 << (U)(256 / L - 1);                                     \
    S beyond = __builtin_astype(s >= (U)(past), S);                                                       \
    U kept = __COMPASS_PICK(U, S, beyond, (U)(kept_past), ~__compass_shr((U)-1, s) | (U)1);               \
    U limit = __COMPASS_PICK(U, S, beyond, (U)(limit_past), middle);                                        \
    __asm__("" : "+v"(one));                                                                              \
    S up = __builtin_astype((__builtin_elementwise_fshr(bits, bits, by) & kept) > limit, S);              \
    return __COMPASS_PICK(V, S, up, value + one, value);                                                  \
  }
#define __COMPASS_ROUND_BY_ROTATION(S, ES, U, EU, L)                                                      \
  __COMPASS_ROUND_ROTATED(S, ES, L, S, U, __builtin_elementwise_min(s, (U)(256 / L - 1)), 256 / L, 1, 0)  \
  __COMPASS_ROUND_ROTATED(U, EU, L, S, U, s, 256 / L + 1, 0, 0)
__COMPASS_ROUND_SIGNED(char32, char, 32, char32, uchar32, bool32)
__COMPASS_ROUND_UNSIGNED(uchar32, uchar, 32, char32, uchar32, bool32)
#if defined(__AVX512VBMI2__) && defined(__AVX512VL__)
__COMPASS_ROUND_BY_ROTATION(short16, short, ushort16, ushort, 16)
#else
__COMPASS_ROUND_SIGNED(short16, short, 16, short16, ushort16, bool16)
__COMPASS_ROUND_UNSIGNED(ushort16, ushort, 16, short16, ushort16, bool16)
#endif
#ifdef __AVX512VL__
__COMPASS_ROUND_BY_ROTATION(int8, int, uint8, uint, 8)
#else
__COMPASS_ROUND_SIGNED(int8, int, 8, int8, uint8, bool8)
__COMPASS_ROUND_UNSIGNED(uint8, uint, 8, int8, uint8, bool8)
#endif
#define X(V, E, L, S, U, B)                                                                                     \
  __COMPASS_FN V __compass_ror(V x, U s) {                                                                      \
    U bits = __builtin_astype(x, U), by = s & (U)(256 / L - 1);                                                 \
    return __builtin_astype((bits >> by) | (bits << (((U)(256 / L) - by) & (U)(256 / L - 1))), V);              \
  }
__COMPASS_INTS(X)
#undef X
/* Saturating left shift: the shifted value if shifting back restores x, else the limit on x's side. */
#define X(V, E, L, S, U, B)                                                                                     \
  __COMPASS_FN V __compass_shl_sat(V x, U s) {                                                                  \
    V value = __compass_shl(x, s);                                                                              \
    S fits = __builtin_astype((s < (U)(256 / L)), S) & __builtin_astype(__compass_shr(value, s) == x, S);       \
    V limit = __builtin_astype(__compass_shr((U)-1, (U)1), V) ^ __compass_shr(x, (U)(256 / L - 1));             \
    return __COMPASS_PICK(V, S, fits | (x == (V)(E)0), value, limit);                                           \
  }
__COMPASS_SIGNED(X)
#undef X

#define __COMPASS_SHIFT(name, V, S, U, B, f)                              \
  __COMPASS_BINARY_BOTH(name, V, U, S, B, f(x, y))                        \
  __COMPASS_BINARY_BOTH(name, V, S, S, B, f(x, __builtin_astype(y, U)))
#define X(V, E, L, S, U, B)                                    \
  __COMPASS_SHIFT(__vlsl, V, S, U, B, __compass_shl)           \
  __COMPASS_SHIFT(__vror, V, S, U, B, __compass_ror)
__COMPASS_INTS(X)
#undef X
#define X(V, E, L, S, U, B)                                    \
  __COMPASS_SHIFT(__vasr, V, S, U, B, __compass_shr)           \
  __COMPASS_SHIFT(__vasrr, V, S, U, B, __compass_round_shr)    \
  __COMPASS_SHIFT(__vsasl, V, S, U, B, __compass_shl_sat)
__COMPASS_SIGNED(X)
#undef X
#define X(V, E, L, S, U, B)                                    \
  __COMPASS_SHIFT(__vlsr, V, S, U, B, __compass_shr)           \
  __COMPASS_SHIFT(__vlsrr, V, S, U, B, __compass_round_shr)
__COMPASS_UNSIGNED(X)
#undef X

/* Bit counting and reversal. */
#define X(V, E, L, S, U, B) __COMPASS_UNARY(__vbrevs, V, S, B, __builtin_elementwise_bitreverse(x))
__COMPASS_INTS(X)
#undef X
#define X(V, E, L, S, U, B)                                                                                    \
  __COMPASS_FN U __compass_leading(U x) { return __builtin_elementwise_clzg(x, (U)(256 / (L))); }              \
  __COMPASS_UNARY(__vclz, U, S, B, __compass_leading(x))                                                       \
  __COMPASS_UNARY(__vclz, V, S, B, __builtin_astype(__compass_leading(__builtin_astype(x, U)), V))             \
  __COMPASS_FN U __vcls(U r, V x, B m) {                                                                       \
    V folded = x ^ (x >> (V)(256 / L - 1));                                                                    \
    return __COMPASS_SELECT(U, S, m, __compass_leading(__builtin_astype(folded, U)) - (U)1, r);                \
  }                                                                                                            \
  __COMPASS_FN U __vpcnt(U r, V x, B m) {                                                                      \
    return __COMPASS_SELECT(U, S, m, __builtin_elementwise_popcount(__builtin_astype(x, U)), r);               \
  }
__COMPASS_SIGNED(X)
#undef X

/* Widening multiplication. The products of the low (or high) half of the lanes, in twice the width; `m` has the lanes
 * of x. LO/HI take half a vector; N is its integer type, W the double width, P the product's arithmetic type. */
#define __COMPASS_WIDE_HALF(name, half_of, R, X1, Y1, P, C, B)                                                  \
  __COMPASS_FN R name(R r, X1 x, Y1 y, B m) {                                                                   \
    P product = __builtin_convertvector(x.half_of, P) * __builtin_convertvector(y.half_of, P);                  \
    return __builtin_astype(__COMPASS_SELECT(P, C, m.half_of, product, __builtin_astype(r, P)), R);             \
  }
#define __COMPASS_WIDE_MUL(R, X1, Y1, P, C, B)              \
  __COMPASS_WIDE_HALF(__vmul, lo, R, X1, Y1, P, C, B)       \
  __COMPASS_WIDE_HALF(__vmulh, hi, R, X1, Y1, P, C, B)
#define __COMPASS_WIDE_MULS(S, U, RS, RU, PS, PU, B)        \
  __COMPASS_WIDE_MUL(RS, S, S, PS, PS, B)                   \
  __COMPASS_WIDE_MUL(RS, S, U, PS, PS, B)                   \
  __COMPASS_WIDE_MUL(RS, U, S, PS, PS, B)                   \
  __COMPASS_WIDE_MUL(RU, U, U, PU, PS, B)
__COMPASS_WIDE_MULS(char32, uchar32, short16, ushort16, short16, ushort16, bool32)
__COMPASS_WIDE_MULS(short16, ushort16, int8, uint8, int8, uint8, bool16)
__COMPASS_WIDE_MULS(int8, uint8, int8, uint8, __long4, __ulong4, bool8)

#endif
