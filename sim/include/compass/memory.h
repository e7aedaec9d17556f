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
#elif defined(__AVX2__) && !defined(__COMPASS_CHECK_VALUES)
/* Where some lanes are active, words are loaded by the host's instruction, smaller elements at once where all lanes lie in a
 * page and one of them is active; else active lanes go one by one. Stores of first lanes, as most are, go by halves of what
 * is left. These are assembly, because clang takes a millisecond or two for each loop or chain of branches that it looks into. */
#define __COMPASS_MOVE(mov, scale, register) \
  mov " (%[from],%[at]," scale "), " register "\n " mov " " register ", (%[to],%[at]," scale ")\n"
#define __COMPASS_EACH_ACTIVE(scale, name)                                          \
  "1: test %[bits], %[bits]\n jz 3f\n"                                              \
  "2: tzcnt %[bits], %k[at]\n lea -1(%[bits]), %k[item]\n and %k[item], %[bits]\n"  \
  __COMPASS_MOVE("mov", scale, "%" name "[item]") "test %[bits], %[bits]\n jnz 2b\n3:"
#define __COMPASS_STORE_PART(size, mov, register) \
  "test $" size ", %[bits]\n jz 4f\n " __COMPASS_MOVE(mov, "1", register) "add $" size ", %k[at]\n4:"
#define __COMPASS_STORE_PARTS4                     \
  __COMPASS_STORE_PART("16", "vmovups", "%[wide]") \
  __COMPASS_STORE_PART("8", "mov", "%[item]")      \
  __COMPASS_STORE_PART("4", "mov", "%k[item]")
#define __COMPASS_STORE_PARTS2 __COMPASS_STORE_PARTS4 __COMPASS_STORE_PART("2", "mov", "%w[item]")
#define __COMPASS_STORE_PARTS1 __COMPASS_STORE_PARTS2 __COMPASS_STORE_PART("1", "mov", "%b[item]")
#define __COMPASS_STORE_FIRST(size)                                               \
  "lea 1(%[bits]), %k[item]\n test %k[item], %[bits]\n jnz 1f\n"                  \
  "popcnt %[bits], %[bits]\n lea (,%q[bits]," #size "), %[bits]\n xor %k[at], %k[at]\n" \
  __COMPASS_STORE_PARTS##size "jmp 3f\n"
#define X(V, B, size, name)                                                                           \
  __COMPASS_FN void __compass_store_some(V lanes, V *to, B m) {                                       \
    uint bits = __compass_predicate(m);                                                               \
    ulong at, item;                                                                                   \
    float wide;                                                                                       \
    __asm__(__COMPASS_STORE_FIRST(size) __COMPASS_EACH_ACTIVE(#size, name)                            \
            : [bits] "+r"(bits), [at] "=&r"(at), [item] "=&r"(item), [wide] "=&x"(wide), "+m"(*to)    \
            : [from] "r"(&lanes), [to] "r"(to), "m"(lanes)                                            \
            : "cc");                                                                                  \
  }
X(char32, bool32, 1, "b")
X(short16, bool16, 2, "w")
X(int8, bool8, 4, "k")
#undef X
__COMPASS_FN int8 __compass_load_some(const int8 *p, bool8 m) {
  __compass_v8 active = __builtin_astype(__COMPASS_COND(int8, m), __compass_v8);
  return __builtin_astype(__builtin_ia32_maskloadd256((const __compass_v8 *)p, active), int8);
}
/* More may be loaded at once than clang may know an array to have. */
#define __COMPASS_LOAD_AT_ONCE                                                                               \
  "mov %k[from], %k[at]\n and $4095, %k[at]\n cmp $4064, %k[at]\n ja 1f\n test %[bits], %[bits]\n jz 1f\n" \
  "vmovdqu (%[from]), %[out]\n jmp 4f\n"
#define X(V, B, size, name)                                                                                  \
  __COMPASS_FN V __compass_load_some(const V *from, B m) {                                                   \
    V lanes = 0, out;                                                                                        \
    uint bits = __compass_predicate(m);                                                                      \
    ulong at, item;                                                                                          \
    __asm__(__COMPASS_LOAD_AT_ONCE __COMPASS_EACH_ACTIVE(#size, name) "vmovdqu (%[to]), %[out]\n4:"           \
            : [bits] "+&r"(bits), [at] "=&r"(at), [item] "=&r"(item), [out] "=&x"(out), "+m"(lanes)          \
            : [from] "r"(from), [to] "r"(&lanes), "m"(*from)                                                 \
            : "cc");                                                                                         \
    return out & __COMPASS_COND(V, m);                                                                       \
  }
X(char32, bool32, 1, "b")
X(short16, bool16, 2, "w")
#undef X
#define X(V, E, L, S, U, B)                                                                       \
  __COMPASS_FN V __compass_load(const V *p, B m) {                                                \
    V out;                                                                                        \
    if (!__vandr(m)) return __builtin_astype(__compass_load_some((const S *)p, m), V);            \
    __builtin_memcpy(&out, p, sizeof(V));                                                         \
    return out;                                                                                   \
  }                                                                                               \
  __COMPASS_FN void __compass_store(V v, V *p, B m) {                                             \
    if (__vandr(m))                                                                               \
      __builtin_memcpy(p, &v, sizeof(V));                                                         \
    else                                                                                          \
      __compass_store_some(__builtin_astype(v, S), (S *)p, m);                                    \
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
#if defined(__AVX2__) && !defined(__COMPASS_CHECK_VALUES)
/* Active lanes one after the other, by assembly: of a chain of branches clang makes the same, but takes up to 13 ms for it.
 * Each half of a vector is a register; lane `i` of it is lane `first` + i of all. Where clang knows that all lanes are active,
 * plain accesses are quickest. */
#define __COMPASS_KNOWN(condition) (__builtin_constant_p(condition) && (condition))
#define __COMPASS_EACH_LANE(lanes, first, place, access, next)                                                    \
  ".irp i," lanes "\n test $1<<(\\i+" first "), %[bits]\n jz 1f\n" place(first) access "\n1: " next "\n.endr\n"
#define __COMPASS_BY_OFFSET(first) "movzwl 2*(\\i+" first ")(%[by]), %k[place]\n "
#define __COMPASS_IN_STEPS(first) ""
#define __COMPASS_PUT(name, half, from) "vpinsr" name " $\\i, " from ", %[" half "], %[" half "]"
#define __COMPASS_TAKE(name, half, to) "vpextr" name " $\\i, %[" half "], " to
#define __COMPASS_BOTH_HALVES(access, name, lanes, first, place, address, next)             \
  __COMPASS_EACH_LANE(lanes, "0", place, access(name, "low", address), next)                \
  __COMPASS_EACH_LANE(lanes, first, place, access(name, "high", address), next)
#define __COMPASS_LANES_AT(V, B, name, lanes, first, T, by_place, address, next)                        \
  __COMPASS_FN V __compass_load_at(const V *base, T by, B m) {                                          \
    __int4 low = 0, high = 0;                                                                           \
    ulong place = (ulong)base;                                                                          \
    __asm__(__COMPASS_BOTH_HALVES(__COMPASS_PUT, name, lanes, first, by_place, address, next)           \
            : [low] "+x"(low), [high] "+x"(high), [place] "+&r"(place)                                  \
            : [bits] "r"((uint)__compass_predicate(m)), [base] "r"(base), [by] "r"(by)                  \
            : "cc", "memory");                                                                          \
    return __builtin_astype((int8)(low, high), V);                                                      \
  }                                                                                                     \
  __COMPASS_FN void __compass_store_at(V v, V *base, T by, B m) {                                       \
    int8 words = __builtin_astype(v, int8);                                                             \
    ulong place = (ulong)base;                                                                          \
    __asm__ volatile(__COMPASS_BOTH_HALVES(__COMPASS_TAKE, name, lanes, first, by_place, address, next) \
                     : [place] "+&r"(place)                                                             \
                     : [low] "x"(words.lo), [high] "x"(words.hi), [base] "r"(base), [by] "r"(by),       \
                       [bits] "r"((uint)__compass_predicate(m))                                         \
                     : "cc", "memory");                                                                 \
  }
#define X(V, B, name, lanes, first)                                                                               \
  __COMPASS_LANES_AT(V, B, name, lanes, first, const ushort *, __COMPASS_BY_OFFSET, "(%[base],%[place])", "")     \
  __COMPASS_LANES_AT(V, B, name, lanes, first, long, __COMPASS_IN_STEPS, "(%[place])", "add %[by], %[place]")
X(char32, bool32, "b", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15", "16")
X(short16, bool16, "w", "0,1,2,3,4,5,6,7", "8")
X(int8, bool8, "d", "0,1,2,3", "4")
#undef X
#define X(V, E, L, S, U, B)                                                                                   \
  __COMPASS_FN V __compass_load_stride(const V *p, int s, B m) {                                              \
    bool all = __vandr(m);                                                                                    \
    U out;                                                                                                    \
    if (!__COMPASS_KNOWN(all)) return __builtin_astype(__compass_load_at((const S *)p, (long)s, m), V);       \
    __COMPASS_LANES(i, L) out[i] = __COMPASS_AT(__compass_item##L, p, (long)i * s);                           \
    return __builtin_astype(out, V);                                                                          \
  }                                                                                                           \
  __COMPASS_FN void __compass_store_stride(V v, V *p, int s, B m) {                                           \
    bool all = __vandr(m);                                                                                    \
    if (!__COMPASS_KNOWN(all)) return __compass_store_at(__builtin_astype(v, S), (S *)p, (long)s, m);         \
    __COMPASS_LANES(i, L) __COMPASS_AT(E, p, (long)i * s) = v[i];                                             \
  }                                                                                                           \
  __COMPASS_FN V __compass_gather(const V *p, ushort16 o, ushort16 o1, B m) {                                 \
    ushort16 offsets[2] = {o, o1};                                                                            \
    bool all = __vandr(m);                                                                                    \
    U out;                                                                                                    \
    if (!__COMPASS_KNOWN(all))                                                                                \
      return __builtin_astype(__compass_load_at((const S *)p, (const ushort *)offsets, m), V);                \
    __COMPASS_LANES(i, L) out[i] = __COMPASS_AT(__compass_item##L, p, __COMPASS_OFFSET(i));                   \
    return __builtin_astype(out, V);                                                                          \
  }                                                                                                           \
  __COMPASS_FN void __compass_scatter(V v, V *p, ushort16 o, ushort16 o1, B m) {                              \
    ushort16 offsets[2] = {o, o1};                                                                            \
    bool all = __vandr(m);                                                                                    \
    if (!__COMPASS_KNOWN(all))                                                                                \
      return __compass_store_at(__builtin_astype(v, S), (S *)p, (const ushort *)offsets, m);                  \
    __COMPASS_LANES(i, L) __COMPASS_AT(E, p, __COMPASS_OFFSET(i)) = v[i];                                     \
  }
#else
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
#endif
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
/* Those of all lanes, at an address of vectors (compass_core/hostcc/whole_vectors.py). A load is no expression in brackets, since
 * `(char32)(x)[1]` is an element of a vector, not a vector of an element. */
#ifdef __COMPASS_CHECK
#define __fload __vload
#define __fstore __vstore
#else
#define __fload(p, m) __builtin_choose_expr(1, *(p), 0)
#define __fstore(v, p, m) (*(p) = (v))
#endif
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
