/* Vector loads and stores. Any element-aligned address; memory of inactive lanes is not touched. */
#ifndef COMPASS_MEMORY_H
#define COMPASS_MEMORY_H

/* A pointer of any address space as a plain one: on the host they are the same memory. */
#define __COMPASS_FLAT(T)                                                                        \
  __COMPASS_FN T *__compass_flat(const __global T *p) { return (T *)(ulong)p; }                  \
  __COMPASS_FN T *__compass_flat(const __local T *p) { return (T *)(ulong)p; }                   \
  __COMPASS_FN T *__compass_flat(__constant T *p) { return (T *)(ulong)p; }                      \
  __COMPASS_FN T *__compass_flat(const T *p) { return (T *)p; }
#define X(V, E, L, S, U, B) __COMPASS_FLAT(V)
__COMPASS_ALL(X)
#undef X
#define __COMPASS_BYTES(p) ((uchar *)(ulong)(p))

#ifdef __COMPASS_CHECK_VALUES
/* Where kernels are compiled to find values that were never set, each array is announced. */
void __compass_declared(void *array);
#endif

#ifdef __COMPASS_CHECK
/* Kernels compiled for checks (compass_runtime/checks): the engine looks at every lane and does the access. These are
 * functions of their own, so that clang adds no checks to them and the kernel's stack frame stays small. */
void __compass_checked_lanes(void *value, const void *base, long step, const void *offsets, const void *mask,
                             uint shape, ulong pc);
#define __COMPASS_CHECKED_FN \
  static __attribute__((overloadable, noinline, nodebug, no_sanitize("address", "kernel-address")))
#define __COMPASS_CHECKED(value, base, step, offsets, m, E, L, kind)                                     \
  __compass_checked_lanes(value, base, step, offsets, &m, (L) | (uint)sizeof(E) << 8 | (uint)(kind) << 16, \
                          (ulong)__builtin_return_address(0))
#define X(V, E, L, S, U, B)                                                             \
  __COMPASS_CHECKED_FN V __compass_load_stride(const V *p, int s, B m) {                \
    V out = (V)(E)0;                                                                    \
    __COMPASS_CHECKED(&out, p, s, NULL, m, E, L, 1);                                    \
    return out;                                                                         \
  }                                                                                     \
  __COMPASS_CHECKED_FN void __compass_store_stride(V v, V *p, int s, B m) {             \
    __COMPASS_CHECKED(&v, p, s, NULL, m, E, L, 2);                                      \
  }                                                                                     \
  __COMPASS_CHECKED_FN V __compass_gather(const V *p, ushort16 o, ushort16 o1, B m) {   \
    ushort16 offsets[2] = {o, o1};                                                      \
    V out = (V)(E)0;                                                                    \
    __COMPASS_CHECKED(&out, p, 0, offsets, m, E, L, 1);                                 \
    return out;                                                                         \
  }                                                                                     \
  __COMPASS_CHECKED_FN void __compass_scatter(V v, V *p, ushort16 o, ushort16 o1, B m) { \
    ushort16 offsets[2] = {o, o1};                                                      \
    __COMPASS_CHECKED(&v, p, 0, offsets, m, E, L, 2);                                   \
  }                                                                                     \
  __COMPASS_FN V __compass_load(const V *p, B m) { return __compass_load_stride(p, (int)sizeof(E), m); } \
  __COMPASS_FN void __compass_store(V v, V *p, B m) { __compass_store_stride(v, p, (int)sizeof(E), m); }
__COMPASS_ALL(X)
#undef X
#else
/* Elements as integers, of which hosts put vectors together best. */
typedef uchar __compass_item32;
typedef ushort __compass_item16;
typedef uint __compass_item8;

/* Masked access by the host's instructions where it has them for all widths; else one plain access when every lane is
 * active, and lane by lane when not. */
#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define __COMPASS_LOAD_32 __builtin_ia32_loaddquqi256_mask
#define __COMPASS_LOAD_16 __builtin_ia32_loaddquhi256_mask
#define __COMPASS_LOAD_8 __builtin_ia32_loaddqusi256_mask
#define __COMPASS_STORE_32 __builtin_ia32_storedquqi256_mask
#define __COMPASS_STORE_16 __builtin_ia32_storedquhi256_mask
#define __COMPASS_STORE_8 __builtin_ia32_storedqusi256_mask
#define X(V, E, L, S, U, B)                                                                                          \
  __COMPASS_FN V __compass_load(const V *p, B m) {                                                                   \
    __compass_v##L zero = __builtin_astype((V)(E)0, __compass_v##L);                                                 \
    return __builtin_astype(__COMPASS_LOAD_##L((const __compass_v##L *)p, zero, __compass_predicate(m)), V);         \
  }                                                                                                                  \
  __COMPASS_FN void __compass_store(V v, V *p, B m) {                                                                \
    __COMPASS_STORE_##L((__compass_v##L *)p, __builtin_astype(v, __compass_v##L), __compass_predicate(m));           \
  }
#elif defined(__AVX2__)
/* Words of active lanes by the host's instruction. Where the first lanes are active, as in most masks, smaller ones by whole
 * words and the bytes behind them, and stores in halves of what is left; else active lane by active lane. */
__COMPASS_FN int8 __compass_load_words(const uchar *p, int8 active) {
  return __builtin_astype(__builtin_ia32_maskloadd256((const __compass_v8 *)p, __builtin_astype(active, __compass_v8)), int8);
}
__COMPASS_FN int8 __compass_load_first(const uchar *p, uint bytes) {
  const int8 number = (int8)(0, 1, 2, 3, 4, 5, 6, 7);
  int8 words = __compass_load_words(p, number < (int8)(int)(bytes / 4));
  uint rest = 0;
  p += bytes & ~3u;
  if (bytes & 2) {
    ushort two;
    __builtin_memcpy(&two, p, 2);
    rest = two;
  }
  if (bytes & 1) rest |= (uint)p[bytes & 2] << (bytes & 2) * 8;
  return words | ((number == (int8)(int)(bytes / 4)) & (int8)(int)rest);
}
#define __COMPASS_STORE_PART(part)           \
  if (bytes & part) {                        \
    __builtin_memcpy(p + at, lanes + at, part); \
    at += part;                              \
  }
__COMPASS_FN void __compass_store_first(uchar *p, const uchar *lanes, uint bytes) {
  uint at = 0;
  __COMPASS_STORE_PART(16)
  __COMPASS_STORE_PART(8)
  __COMPASS_STORE_PART(4)
  __COMPASS_STORE_PART(2)
  __COMPASS_STORE_PART(1)
}
#undef __COMPASS_STORE_PART
#define __COMPASS_EACH_ACTIVE(i, bits) \
  _Pragma("clang loop unroll(disable)") for (int i; bits && (i = __builtin_ctz(bits), 1); bits &= bits - 1)
#define X(V, E, L, S, U, B)                                                                        \
  __COMPASS_FN V __compass_load(const V *p, B m) {                                                 \
    V out;                                                                                         \
    uint bits = __compass_predicate(m);                                                            \
    if (__vandr(m)) {                                                                              \
      __builtin_memcpy(&out, p, sizeof(V));                                                        \
    } else if (!(bits & (bits + 1))) {                                                             \
      out = __builtin_astype(__compass_load_first((const uchar *)p, __builtin_popcount(bits) * (uint)sizeof(E)), V); \
    } else {                                                                                       \
      __compass_item##L lanes[L] = {0};                                                            \
      __COMPASS_EACH_ACTIVE(i, bits) lanes[i] = ((const __compass_item##L *)p)[i];                 \
      __builtin_memcpy(&out, lanes, sizeof(V));                                                    \
    }                                                                                              \
    return out;                                                                                    \
  }                                                                                                \
  __COMPASS_FN void __compass_store(V v, V *p, B m) {                                              \
    if (__vandr(m)) {                                                                              \
      __builtin_memcpy(p, &v, sizeof(V));                                                          \
    } else {                                                                                       \
      __compass_item##L lanes[L];                                                                  \
      uint bits = __compass_predicate(m);                                                          \
      __builtin_memcpy(lanes, &v, sizeof(V));                                                      \
      if (!(bits & (bits + 1)))                                                                    \
        __compass_store_first((uchar *)p, (const uchar *)lanes, __builtin_popcount(bits) * (uint)sizeof(E)); \
      else                                                                                         \
        __COMPASS_EACH_ACTIVE(i, bits) ((__compass_item##L *)p)[i] = lanes[i];                     \
    }                                                                                              \
  }
#else
/* Lane by lane without branches or long code: what is inactive comes from, or goes to, a place of no interest. */
#define X(V, E, L, S, U, B)                                                                  \
  __COMPASS_FN V __compass_load(const V *p, B m) {                                           \
    V out;                                                                                   \
    if (__vandr(m)) {                                                                        \
      __builtin_memcpy(&out, p, sizeof(V));                                                  \
    } else {                                                                                 \
      __compass_item##L lanes[L], none = 0;                                                  \
      char active[L];                                                                        \
      __builtin_memcpy(active, &m, L);                                                       \
      _Pragma("clang loop unroll(disable)") for (int i = 0; i < L; i++)                      \
        lanes[i] = *(active[i] & 1 ? (const __compass_item##L *)p + i : &none);              \
      __builtin_memcpy(&out, lanes, sizeof(V));                                              \
    }                                                                                        \
    return out;                                                                              \
  }                                                                                          \
  __COMPASS_FN void __compass_store(V v, V *p, B m) {                                        \
    if (__vandr(m)) {                                                                        \
      __builtin_memcpy(p, &v, sizeof(V));                                                    \
    } else {                                                                                 \
      __compass_item##L lanes[L], none;                                                      \
      char active[L];                                                                        \
      __builtin_memcpy(active, &m, L);                                                       \
      __builtin_memcpy(lanes, &v, sizeof(V));                                                \
      _Pragma("clang loop unroll(disable)") for (int i = 0; i < L; i++)                      \
        *(active[i] & 1 ? (__compass_item##L *)p + i : &none) = lanes[i];                    \
    }                                                                                        \
  }
#endif
__COMPASS_ALL(X)
#undef X
/* A mask that is one number, as ALL_TRUE_b is, is that of all lanes. Said apart, it spares clang to inline what other masks
 * need, a dozen branches each, only to find that out. */
#define X(V, E, L, S, U, B)                                                  \
  __COMPASS_FN V __compass_load(const V *p, int m) {                         \
    V out = (V)(E)0;                                                         \
    if (m & 1) __builtin_memcpy(&out, p, sizeof(V));                         \
    return out;                                                              \
  }                                                                          \
  __COMPASS_FN void __compass_store(V v, V *p, int m) {                      \
    if (m & 1) __builtin_memcpy(p, &v, sizeof(V));                           \
  }
__COMPASS_ALL(X)
#undef X

/* Lane i at byte distance i * s, or at a byte offset of its own: lanes 0..15 by `o`, lanes 16..31 by `o1`. Scattered
 * lanes are written in lane order, so the highest lane wins where offsets meet. */
#define __COMPASS_AT(E, p, offset) (*(E *)(__COMPASS_BYTES(p) + (offset)))
#define __COMPASS_OFFSET_IN(o, i) (__builtin_astype(o, __ulong4)[(i) / 4 & 3] >> (i) % 4 * 16 & 0xffff)
#define __COMPASS_OFFSET(i) ((i) < 16 ? __COMPASS_OFFSET_IN(o, i) : __COMPASS_OFFSET_IN(o1, i))
#define X(V, E, L, S, U, B)                                                                                   \
  __COMPASS_FN V __compass_load_stride(const V *p, int s, B m) {                                              \
    U out = 0;                                                                                                \
    __COMPASS_LANES(i, L) if (m[i] & 1) out[i] = __COMPASS_AT(__compass_item##L, p, (long)i * s);             \
    return __builtin_astype(out, V);                                                                          \
  }                                                                                                           \
  __COMPASS_FN void __compass_store_stride(V v, V *p, int s, B m) {                                           \
    __COMPASS_LANES(i, L) if (m[i] & 1) __COMPASS_AT(E, p, (long)i * s) = v[i];                               \
  }                                                                                                           \
  __COMPASS_FN V __compass_gather(const V *p, ushort16 o, ushort16 o1, B m) {                                 \
    U out = 0;                                                                                                \
    __COMPASS_LANES(i, L) if (m[i] & 1) out[i] = __COMPASS_AT(__compass_item##L, p, __COMPASS_OFFSET(i));     \
    return __builtin_astype(out, V);                                                                          \
  }                                                                                                           \
  __COMPASS_FN void __compass_scatter(V v, V *p, ushort16 o, ushort16 o1, B m) {                              \
    __COMPASS_LANES(i, L) if (m[i] & 1) __COMPASS_AT(E, p, __COMPASS_OFFSET(i)) = v[i];                       \
  }
__COMPASS_ALL(X)
#undef X
#endif

/* The forms with fewer operands: one offset vector for 16- and 32-bit elements, no mask for all lanes. */
#define __COMPASS_ONE_OFFSET(V, B)                                                                                   \
  __COMPASS_FN V __compass_gather(const V *p, ushort16 o, B m) { return __compass_gather(p, o, o, m); }              \
  __COMPASS_FN V __compass_gather(const V *p, ushort16 o) { return __compass_gather(p, o, o, (B)(char)-1); }         \
  __COMPASS_FN void __compass_scatter(V v, V *p, ushort16 o, B m) { __compass_scatter(v, p, o, o, m); }              \
  __COMPASS_FN void __compass_scatter(V v, V *p, ushort16 o) { __compass_scatter(v, p, o, o, (B)(char)-1); }
#define __COMPASS_TWO_OFFSETS(V, B)                                                                                  \
  __COMPASS_FN V __compass_gather(const V *p, ushort16 o, ushort16 o1) {                                             \
    return __compass_gather(p, o, o1, (B)(char)-1);                                                                  \
  }                                                                                                                  \
  __COMPASS_FN void __compass_scatter(V v, V *p, ushort16 o, ushort16 o1) {                                          \
    __compass_scatter(v, p, o, o1, (B)(char)-1);                                                                     \
  }
__COMPASS_TWO_OFFSETS(char32, bool32)
__COMPASS_TWO_OFFSETS(uchar32, bool32)
__COMPASS_ONE_OFFSET(short16, bool16)
__COMPASS_ONE_OFFSET(ushort16, bool16)
__COMPASS_ONE_OFFSET(half16, bool16)
__COMPASS_ONE_OFFSET(bf1616, bool16)
__COMPASS_ONE_OFFSET(int8, bool8)
__COMPASS_ONE_OFFSET(uint8, bool8)
__COMPASS_ONE_OFFSET(float8, bool8)

#define __vload(p, m) __compass_load(__compass_flat(p), m)
#define __vstore(v, p, m) __compass_store(v, __compass_flat(p), m)
/* A store whose mask is a number and has first lanes alone (compass_core/hostcc/first_lanes.py): so many bytes. */
#ifdef __COMPASS_CHECK
#define __wstore(v, p, m) __vstore(v, p, m)
#else
#define __COMPASS_LANE_BITS(L) (0xffffffffu / (uint)((1ul << 32 / (L)) - 1))
#define X(V, E, L, S, U, B)                                                                                  \
  __COMPASS_FN void __compass_store(V v, V *p, uint bits, B m) {                                             \
    __builtin_memcpy(p, &v, (uint)__builtin_popcount(bits & __COMPASS_LANE_BITS(L)) * (uint)sizeof(E));      \
  }
__COMPASS_ALL(X)
#undef X
#define __compass_bits___vmov_b(u) (u)
#define __compass_bits___vmov_h(u) (u)
#define __compass_bits___vmov_w(u) (u)
#define __wstore(v, p, m) __compass_store(v, __compass_flat(p), __compass_bits_##m, m)
#endif
#define __vload_stride(p, s, m) __compass_load_stride(__compass_flat(p), s, m)
#define __vstore_stride(v, p, s, m) __compass_store_stride(v, __compass_flat(p), s, m)
#define __vload_gather(p, ...) __compass_gather(__compass_flat(p), __VA_ARGS__)
#define __vstore_scatter(v, p, ...) __compass_scatter(v, __compass_flat(p), __VA_ARGS__)

#endif
