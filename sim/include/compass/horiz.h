/* Operations across lanes: dot products, reductions, float accumulation of 16-bit products, 4x4 matrices. */
#ifndef COMPASS_HORIZ_H
#define COMPASS_HORIZ_H

/* Dot product of neighbouring lanes. Each product is exact in the result type R, so one saturating addition of the even
 * and the odd product is the exact sum cut once. vdpa has three terms and adds them in the type W. C is R's signed
 * counterpart. */
#define __COMPASS_ACTIVE(V, S, x, m) __COMPASS_SELECT(V, S, m, x, (V)0)
#define __COMPASS_PRODUCTS(R, x, y)                                                            \
  R even = __builtin_astype(__compass_even(x), R) * __builtin_astype(__compass_even(y), R);    \
  R odd = __builtin_astype(__compass_odd(x), R) * __builtin_astype(__compass_odd(y), R);
#define __COMPASS_DOT(R, X1, Y1, S, C, B)                                                                            \
  __COMPASS_FN R __vdot(R r, X1 x, Y1 y, B m) {                                                                      \
    X1 a = __COMPASS_ACTIVE(X1, S, x, m);                                                                            \
    __COMPASS_PRODUCTS(R, a, y)                                                                                      \
    C any = __builtin_convertvector(((m.even | m.odd) & (char)1) != (char)0, C);                                     \
    return __COMPASS_PICK(R, C, any, __builtin_elementwise_add_sat(even, odd), r);                                   \
  }
#define __COMPASS_WIDE_SUM(R, X1, Y1, W, FROM, TO)                                                                   \
  __COMPASS_FN R __compass_dot_sum(R acc, X1 x, Y1 y) {                                                              \
    __COMPASS_PRODUCTS(R, x, y)                                                                                      \
    W sum = __builtin_convertvector(acc, W) + __builtin_convertvector(even, W) + __builtin_convertvector(odd, W);    \
    return __builtin_convertvector(__COMPASS_CLAMP(W, sum, FROM, TO), R);                                            \
  }
#define __COMPASS_DPA(R, X1, Y1, S, B) \
  __COMPASS_FN R __vdpa(R acc, X1 x, Y1 y, B m) { return __compass_dot_sum(acc, __COMPASS_ACTIVE(X1, S, x, m), y); }

/* Of signed lanes: the only sum of two products that wraps is that of four times the smallest number. */
__COMPASS_FN short16 __compass_dot_sum(short16 acc, char32 x, char32 y) {
  __COMPASS_PRODUCTS(short16, x, y)
  short16 most = __builtin_elementwise_add_sat(even, odd), rest = even + odd - most; /* 1 where that was cut, else 0 */
  return __builtin_elementwise_add_sat(__builtin_elementwise_add_sat(acc, most), rest);
}
__COMPASS_WIDE_SUM(int8, short16, short16, __long8, -2147483647l - 1, 2147483647l)
#if defined(__AVXVNNI__) || (defined(__AVX512VNNI__) && defined(__AVX512VL__))
#define __COMPASS_VNNI
#endif
#ifdef __AVX2__
typedef short __compass_s16 __attribute__((vector_size(32)));
__COMPASS_FN int8 __compass_pair_sums(short16 x, short16 y) {
  return as_int8(__builtin_ia32_pmaddwd256(__builtin_astype(x, __compass_s16), __builtin_astype(y, __compass_s16)));
}
/* The saturating sum; where `flipped` is -1, the one that wraps is the one that seems not to. That a lane leaves its range is so
 * rare that a branch looks for it: in a loop, one sum then waits for one addition only. It is in assembly, for which clang needs
 * a third of the time. */
__COMPASS_FN int8 __compass_clipped(int8 x, int8 y, int8 flipped) {
#ifdef __COMPASS_CHECK_VALUES
  int8 sum = x + y, wraps = ((x ^ sum) & (y ^ sum)) ^ flipped; /* by their signs */
  return wraps < 0 ? x >> 31 ^ 2147483647 : sum;
#else
  int8 sum, wraps, end, largest;
  __asm__("vpaddd %[x], %[y], %[sum]\n vpxor %[x], %[sum], %[wraps]\n vpxor %[y], %[sum], %[end]\n"
          "vpand %[end], %[wraps], %[wraps]\n vpxor %[flipped], %[wraps], %[wraps]\n"
          "vtestps %[wraps], %[wraps]\n jz 1f\n"
          "vpsrad $31, %[x], %[end]\n vpcmpeqd %[largest], %[largest], %[largest]\n"
          "vpsrld $1, %[largest], %[largest]\n vpxor %[largest], %[end], %[end]\n"
          "vblendvps %[wraps], %[end], %[sum], %[sum]\n1:"
          : [sum] "=&x"(sum), [wraps] "=&x"(wraps), [end] "=&x"(end), [largest] "=&x"(largest)
          : [x] "x"(x), [y] "x"(y), [flipped] "x"(flipped)
          : "cc");
  return sum;
#endif
}
#endif
#if defined(__COMPASS_VNNI)
typedef int __compass_s32x8 __attribute__((vector_size(32)));
/* The host's own instruction cuts the exact sum of all three terms. */
__COMPASS_FN int8 __vdpa(int8 acc, short16 x, short16 y, bool16 m) {
  __compass_s16 a = __builtin_astype(__COMPASS_ACTIVE(short16, short16, x, m), __compass_s16);
  return as_int8(__builtin_ia32_vpdpwssds256(__builtin_astype(acc, __compass_s32x8), a, __builtin_astype(y, __compass_s16)));
}
#elif defined(__AVX2__)
/* Of two products only four times the smallest number wraps: to the least number, so that `clipped` finds the opposite. */
__COMPASS_FN int8 __vdpa(int8 acc, short16 x, short16 y, bool16 m) {
  int8 pairs = __compass_pair_sums(__COMPASS_ACTIVE(short16, short16, x, m), y);
  return __compass_clipped(acc, pairs, pairs == (-2147483647 - 1));
}
#else
__COMPASS_FN int8 __compass_pair_sums(short16 x, short16 y) {
  __COMPASS_PRODUCTS(int8, x, y)
  return even + odd;
}
__COMPASS_DPA(int8, short16, short16, short16, bool16)
#endif
__COMPASS_DPA(short16, char32, char32, char32, bool32)
__COMPASS_DOT(short16, char32, char32, char32, short16, bool32)
__COMPASS_DOT(int8, short16, short16, short16, int8, bool16)

#define __COMPASS_DOTS(R, X1, Y1, S, C, W, B, FROM, TO) \
  __COMPASS_WIDE_SUM(R, X1, Y1, W, FROM, TO)            \
  __COMPASS_DPA(R, X1, Y1, S, B)                        \
  __COMPASS_DOT(R, X1, Y1, S, C, B)
__COMPASS_DOTS(short16, char32, uchar32, char32, short16, __int16, bool32, -32768, 32767)
__COMPASS_DOTS(short16, uchar32, char32, char32, short16, __int16, bool32, -32768, 32767)
__COMPASS_DOTS(ushort16, uchar32, uchar32, char32, short16, __int16, bool32, 0, 65535)
__COMPASS_DOTS(int8, short16, ushort16, short16, int8, __long8, bool16, -2147483647l - 1, 2147483647l)
__COMPASS_DOTS(int8, ushort16, short16, short16, int8, __long8, bool16, -2147483647l - 1, 2147483647l)
__COMPASS_DOTS(uint8, ushort16, ushort16, short16, int8, __long8, bool16, 0, 4294967295l)

/* Dot product of four neighbouring 8-bit lanes; no sum of four products leaves the result's range. The host's own
 * instruction multiplies unsigned by signed lanes. Where both are of one kind, one operand is moved by 128 into the other
 * kind, which its highest bit does, and what that adds to the sum is taken away again. */
#ifdef __COMPASS_VNNI
typedef uchar __compass_u8x32 __attribute__((vector_size(32)));
typedef char __compass_s8x32 __attribute__((vector_size(32)));
__COMPASS_FN int8 __compass_quad_sums(uchar32 x, char32 y) {
  return as_int8(__builtin_ia32_vpdpbusd256(__builtin_astype((int8)0, __compass_s32x8), __builtin_astype(x, __compass_u8x32),
                                            __builtin_astype(y, __compass_s8x32)));
}
__COMPASS_FN int8 __compass_quad_sums(char32 x, uchar32 y) { return __compass_quad_sums(y, x); }
__COMPASS_FN int8 __compass_quad_sums(char32 x, char32 y) {
  return __compass_quad_sums(as_uchar32(x) ^ (uchar)128, y) - __compass_quad_sums((uchar32)128, y);
}
__COMPASS_FN int8 __compass_quad_sums(uchar32 x, uchar32 y) {
  return __compass_quad_sums(x, as_char32(y ^ (uchar)128)) - __compass_quad_sums(x, (char32)(-128));
}
#else
#define X(X1, Y1)                                                                                                  \
  __COMPASS_FN int8 __compass_quad_sums(X1 x, Y1 y) {                                                              \
    return __compass_pair_sums(as_short16(__compass_even(x)), as_short16(__compass_even(y))) +                     \
           __compass_pair_sums(as_short16(__compass_odd(x)), as_short16(__compass_odd(y)));                        \
  }
X(char32, char32)
X(char32, uchar32)
X(uchar32, char32)
X(uchar32, uchar32)
#undef X
#endif

__COMPASS_FN int8 __compass_accumulate(int8 x, int8 y) {
#ifdef __AVX2__
  return __compass_clipped(x, y, (int8)0);
#else
  return __builtin_elementwise_add_sat(x, y);
#endif
}
__COMPASS_FN uint8 __compass_accumulate(uint8 x, uint8 y) { return __builtin_elementwise_add_sat(x, y); }
#define __COMPASS_QUADS_ADDED(R, X1, Y1)                                                    \
  __COMPASS_FN R __compass_quads_added(R acc, X1 x, Y1 y) {                                 \
    return __compass_accumulate(acc, __builtin_astype(__compass_quad_sums(x, y), R));       \
  }
__COMPASS_QUADS_ADDED(int8, char32, char32)
__COMPASS_QUADS_ADDED(uint8, uchar32, uchar32)
#ifdef __COMPASS_VNNI
/* Both steps are one instruction of the host, which cuts the exact sum of all terms. */
__COMPASS_FN int8 __compass_quads_added(int8 acc, uchar32 x, char32 y) {
  return as_int8(__builtin_ia32_vpdpbusds256(__builtin_astype(acc, __compass_s32x8), __builtin_astype(x, __compass_u8x32),
                                             __builtin_astype(y, __compass_s8x32)));
}
__COMPASS_FN int8 __compass_quads_added(int8 acc, char32 x, uchar32 y) { return __compass_quads_added(acc, y, x); }
#else
__COMPASS_QUADS_ADDED(int8, uchar32, char32)
__COMPASS_QUADS_ADDED(int8, char32, uchar32)
#endif

#define __COMPASS_QDOT(R, X1, Y1)                                                                                  \
  __COMPASS_FN R __vqdot(R r, X1 x, Y1 y, bool32 m) {                                                              \
    int8 any = (__builtin_astype(m, int8) & 0x01010101) != 0;                                                      \
    R sum = __builtin_astype(__compass_quad_sums(__COMPASS_ACTIVE(X1, char32, x, m), y), R);                       \
    return __COMPASS_PICK(R, int8, any, sum, r);                                                                   \
  }                                                                                                                \
  __COMPASS_FN R __vqdpa(R acc, X1 x, Y1 y, bool32 m) {                                                            \
    return __compass_quads_added(acc, __COMPASS_ACTIVE(X1, char32, x, m), y);                                      \
  }
__COMPASS_QDOT(int8, char32, char32)
__COMPASS_QDOT(int8, char32, uchar32)
__COMPASS_QDOT(int8, uchar32, char32)
__COMPASS_QDOT(uint8, uchar32, uchar32)

/* The same for 16-bit floats: exact products, summed in double in lane order, rounded once to float. The result lies
 * in the even lanes; odd lanes are those of the first operand. */
#define __COMPASS_QDOT_FLOAT(V)                                                                                    \
  __COMPASS_FN float8 __compass_quads(float8 acc, V x, V y, bool16 m, bool accumulate) {                           \
    __float16 a = __compass_float(x), b = __compass_float(y);                                                      \
    float8 out = acc;                                                                                              \
    __COMPASS_LANES(k, 4) {                                                                                        \
      double sum = 0.0;                                                                                            \
      bool any = false;                                                                                            \
      __COMPASS_LANES(j, 4) {                                                                                      \
        bool active = m[4 * k + j] & 1;                                                                            \
        sum += active ? (double)a[4 * k + j] * (double)b[4 * k + j] : 0.0;                                         \
        any |= active;                                                                                             \
      }                                                                                                            \
      if (any) out[2 * k] = (float)(accumulate ? (double)acc[2 * k] + sum : sum);                                  \
    }                                                                                                              \
    return out;                                                                                                    \
  }                                                                                                                \
  __COMPASS_FN float8 __vqdot(float8 r, V x, V y, bool16 m) { return __compass_quads(r, x, y, m, false); }         \
  __COMPASS_FN float8 __vqdpa(float8 acc, V x, V y, bool16 m) { return __compass_quads(acc, x, y, m, true); }      \
  __COMPASS_FN float8 __vfmae(float8 acc, V x, V y, bool8 m) {                                                     \
    float8 sum = acc + __vcvtue_tfp32(x) * __vcvtue_tfp32(y);                                                      \
    return __COMPASS_SELECT(float8, int8, m, sum, acc);                                                            \
  }                                                                                                                \
  __COMPASS_FN float8 __vfmao(float8 acc, V x, V y, bool8 m) {                                                     \
    float8 sum = acc + __vcvtuo_tfp32(x) * __vcvtuo_tfp32(y);                                                      \
    return __COMPASS_SELECT(float8, int8, m, sum, acc);                                                            \
  }
__COMPASS_QDOT_FLOAT(half16)
__COMPASS_QDOT_FLOAT(bf1616)

/* 4x4 matrices: x row-major, y column-major, 16 floats row-major in memory. Each element is the sum of exact products
 * in k order, in double, rounded once; vmma adds the old value last. */
#define __COMPASS_MATRIX(V)                                                                                        \
  __COMPASS_FN void __compass_mma(float *p, V x, V y, bool accumulate) {                                           \
    __float16 a = __compass_float(x), b = __compass_float(y);                                                      \
    for (int i = 0; i < 16; i++) {                                                                                 \
      double sum = 0.0;                                                                                            \
      for (int k = 0; k < 4; k++) sum += (double)a[i / 4 * 4 + k] * (double)b[i % 4 * 4 + k];                      \
      p[i] = (float)(accumulate ? (double)p[i] + sum : sum);                                                       \
    }                                                                                                              \
  }
__COMPASS_MATRIX(half16)
__COMPASS_MATRIX(bf1616)
#ifdef __AIPUX2__
#define __vmma(p, x, y) __compass_mma((float *)(ulong)(p), x, y, true)
#define __vmml(p, x, y) __compass_mma((float *)(ulong)(p), x, y, false)
#endif

/* Reductions put their result in lane 0; the other lanes are 0. */
#define X(V, E, L, S, U, B)                                                                                   \
  __COMPASS_FN V __vrpadd(V r, V x, B m) {                                                                    \
    V out = (V)(E)0;                                                                                          \
    out[0] = __builtin_reduce_add(__COMPASS_SELECT(V, S, m, x, (V)(E)0));                                     \
    return out;                                                                                               \
  }                                                                                                           \
  __COMPASS_FN E __compass_reduce_max(V x) { return __builtin_reduce_max(x); }                                \
  __COMPASS_FN E __compass_reduce_min(V x) { return __builtin_reduce_min(x); }
__COMPASS_INTS(X)
#undef X

/* Float sums follow one fixed tree: neighbours first. */
__COMPASS_FN float8 __compass_tree_sum(float8 x) {
  __COMPASS_VECTOR(float, 4) a = x.even + x.odd;
  __COMPASS_VECTOR(float, 2) b = a.even + a.odd;
  float8 out = 0.0f;
  out[0] = 0.0f + (b.x + b.y);
  return out;
}
__COMPASS_FN float8 __vrpadd(float8 r, float8 x, bool8 m) {
  return __compass_tree_sum(__COMPASS_SELECT(float8, int8, m, x, (float8)0.0f));
}
#define __COMPASS_SUM_16(V)                                                                    \
  __COMPASS_FN float8 __vrpadd(float8 r, V x, bool16 m) {                                      \
    __float16 wide = __compass_float(x);                                                       \
    __int16 active = __COMPASS_COND(__int16, m);                                               \
    __float16 kept = __COMPASS_PICK(__float16, __int16, active, wide, (__float16)0.0f);        \
    return __compass_tree_sum(kept.lo + kept.hi);                                              \
  }
__COMPASS_SUM_16(half16)
__COMPASS_SUM_16(bf1616)

/* Float minimum and maximum by halving; 16-bit floats as the float values they are. */
#define __COMPASS_HALVE(x, a, b, c, d) __builtin_shufflevector(x, x, a, b, c, d, a, b, c, d)
#define __COMPASS_REDUCE_FLOAT(which)                                                            \
  __COMPASS_FN float __compass_reduce_##which(float8 x) {                                        \
    x = __compass_##which(x, __COMPASS_HALVE(x, 4, 5, 6, 7));                                    \
    x = __compass_##which(x, __COMPASS_HALVE(x, 2, 3, 2, 3));                                    \
    return __compass_##which(x, __COMPASS_HALVE(x, 1, 1, 1, 1))[0];                              \
  }                                                                                              \
  __COMPASS_FN half __compass_reduce_##which(half16 x) {                                         \
    __float16 wide = __compass_float(x);                                                         \
    return (half)__compass_reduce_##which(__compass_##which(wide.lo, wide.hi));                  \
  }                                                                                              \
  __COMPASS_FN bf16 __compass_reduce_##which(bf1616 x) {                                         \
    __float16 wide = __compass_float(x);                                                         \
    return as_bf16((ushort)(as_uint(__compass_reduce_##which(__compass_##which(wide.lo, wide.hi))) >> 16)); \
  }
__COMPASS_REDUCE_FLOAT(max)
__COMPASS_REDUCE_FLOAT(min)

/* Inactive lanes take the value that cannot win: the type's end, or NaN. vrpmaxe also says which lane won first. */
#define __COMPASS_EXTREME(name, V, E, L, S, U, B, reduce, never)              \
  __COMPASS_FN V name(V r, V x, B m) {                                        \
    V out = (V)(E)0;                                                          \
    out[0] = reduce(__COMPASS_SELECT(V, S, m, x, never));                     \
    return out;                                                               \
  }                                                                           \
  __COMPASS_FN V name##e(V r, V x, B m) {                                     \
    V out = name(r, x, m);                                                    \
    S bits = __builtin_astype(out, S);                                        \
    int first = 0;                                                            \
    for (int i = L - 1; i >= 0; i--) first = (m[i] & 1) && x[i] == out[0] ? i : first; \
    bits[1] = first;                                                          \
    return __builtin_astype(bits, V);                                         \
  }
#define __COMPASS_TOP(V, U, L) __builtin_astype((U)-1 >> (U)1, V)
#define X(V, E, L, S, U, B)                                                                             \
  __COMPASS_EXTREME(__vrpmax, V, E, L, S, U, B, __compass_reduce_max, ~__COMPASS_TOP(V, U, L))          \
  __COMPASS_EXTREME(__vrpmin, V, E, L, S, U, B, __compass_reduce_min, __COMPASS_TOP(V, U, L))
__COMPASS_SIGNED(X)
#undef X
#define X(V, E, L, S, U, B)                                                                             \
  __COMPASS_EXTREME(__vrpmax, V, E, L, S, U, B, __compass_reduce_max, (V)(E)0)                          \
  __COMPASS_EXTREME(__vrpmin, V, E, L, S, U, B, __compass_reduce_min, (V)-1)
__COMPASS_UNSIGNED(X)
#undef X
#define X(V, E, L, S, U, B)                                                                             \
  __COMPASS_EXTREME(__vrpmax, V, E, L, S, U, B, __compass_reduce_max, __COMPASS_TOP(V, U, L))           \
  __COMPASS_EXTREME(__vrpmin, V, E, L, S, U, B, __compass_reduce_min, __COMPASS_TOP(V, U, L))
__COMPASS_FLOATS(X)
#undef X

/* Sums of dot products in texts that promise to clip none (compass_core/hostcc/promises.py). Hosts that clip by an
 * instruction, and checked runs, do it here, too. */
#if defined(__COMPASS_VNNI) || defined(__COMPASS_CHECK)
#define __wdpa __vdpa
#define __wqdpa __vqdpa
/* Factors that are taken apart once (compass_core/hostcc/factors.py) stay in one piece here. */
typedef char32 __pair;
#define __wload __vload
#define __compass_halves_of(pointer, array)
#define __compass_halve(pointer, bytes)
#else
#ifdef __AVX2__ /* keeps clang from adding up products of several calls first, for which it has no registers */
#define __COMPASS_IN_TURN(acc) __asm__ volatile("" : "+x"(acc))
#else
#define __COMPASS_IN_TURN(acc)
#endif
#define __COMPASS_UNCLIPPED(R, X1, Y1)                                                                               \
  __COMPASS_FN R __wqdpa(R acc, X1 x, Y1 y, bool32 m) {                                                              \
    X1 a = __COMPASS_ACTIVE(X1, char32, x, m);                                                                       \
    acc += __builtin_astype(__compass_pair_sums(as_short16(__compass_even(a)), as_short16(__compass_even(y))), R);   \
    __COMPASS_IN_TURN(acc);                                                                                          \
    acc += __builtin_astype(__compass_pair_sums(as_short16(__compass_odd(a)), as_short16(__compass_odd(y))), R);     \
    __COMPASS_IN_TURN(acc);                                                                                          \
    return acc;                                                                                                      \
  }
__COMPASS_UNCLIPPED(int8, char32, char32)
__COMPASS_UNCLIPPED(int8, char32, uchar32)
__COMPASS_UNCLIPPED(int8, uchar32, char32)
__COMPASS_UNCLIPPED(uint8, uchar32, uchar32)
/* Factors whose even and odd bytes are taken apart once: the array of halves has two vectors for each of bytes. */
typedef struct {
  short16 even, odd;
} __pair;
#define __compass_halves_of(pointer, array) \
  const __lsram char *__compass_factors = pointer; \
  __pair __compass_halves[sizeof(array) / 32] __attribute__((aligned(64)))
#define __wload(p, m) \
  (*(const __pair *)((const char *)__compass_halves + 2 * ((const __lsram char *)(p) - __compass_factors)))
#define __compass_halve(pointer, bytes) \
  for (int __compass_i = 0; __compass_i < ((bytes) + 31) / 32; __compass_i++) \
  __compass_halves[__compass_i] = __compass_pair_of(((const __lsram char32 *)(pointer))[__compass_i])
__COMPASS_FN __pair __compass_pair_of(char32 bytes) {
  return (__pair){as_short16(__compass_even(bytes)), as_short16(__compass_odd(bytes))};
}
#define X(X1)                                                                        \
  __COMPASS_FN int8 __wqdpa(int8 acc, X1 x, __pair y, bool32 m) {                    \
    X1 a = __COMPASS_ACTIVE(X1, char32, x, m);                                       \
    acc += __compass_pair_sums(as_short16(__compass_even(a)), y.even);               \
    __COMPASS_IN_TURN(acc);                                                          \
    acc += __compass_pair_sums(as_short16(__compass_odd(a)), y.odd);                 \
    __COMPASS_IN_TURN(acc);                                                          \
    return acc;                                                                      \
  }
X(char32)
X(uchar32)
#undef X
__COMPASS_FN int8 __wdpa(int8 acc, short16 x, short16 y, bool16 m) {
  acc += __compass_pair_sums(__COMPASS_ACTIVE(short16, short16, x, m), y);
  __COMPASS_IN_TURN(acc);
  return acc;
}
#define __COMPASS_AS_ALWAYS(name, always, R, X1, Y1, B) \
  __COMPASS_FN R name(R acc, X1 x, Y1 y, B m) { return always(acc, x, y, m); }
__COMPASS_AS_ALWAYS(__wdpa, __vdpa, short16, char32, char32, bool32)
__COMPASS_AS_ALWAYS(__wdpa, __vdpa, short16, char32, uchar32, bool32)
__COMPASS_AS_ALWAYS(__wdpa, __vdpa, short16, uchar32, char32, bool32)
__COMPASS_AS_ALWAYS(__wdpa, __vdpa, ushort16, uchar32, uchar32, bool32)
__COMPASS_AS_ALWAYS(__wdpa, __vdpa, int8, short16, ushort16, bool16)
__COMPASS_AS_ALWAYS(__wdpa, __vdpa, int8, ushort16, short16, bool16)
__COMPASS_AS_ALWAYS(__wdpa, __vdpa, uint8, ushort16, ushort16, bool16)
__COMPASS_AS_ALWAYS(__wqdpa, __vqdpa, float8, half16, half16, bool16)
__COMPASS_AS_ALWAYS(__wqdpa, __vqdpa, float8, bf1616, bf1616, bool16)
#endif

#endif
