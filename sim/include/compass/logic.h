/* Select, bitwise and mask operations, comparisons. */
#ifndef COMPASS_LOGIC_H
#define COMPASS_LOGIC_H

#define X(V, E, L, S, U, B)                                                                              \
  __COMPASS_FN V __vsel(V x, V y, B m) { return __COMPASS_SELECT(V, S, m, x, y); }
__COMPASS_ALL(X)
__COMPASS_SMALL_MASKS(X)
#undef X

#define X(V, E, L, S, U, B) \
  __COMPASS_FN V __vbcast(V r, E e, B m) { return __COMPASS_SELECT(V, S, m, (V)e, r); }
__COMPASS_ALL(X)
#undef X

#define X(V, E, L, S, U, B)                                                   \
  __COMPASS_BINARY(__vand, V, S, B, x & y)                                    \
  __COMPASS_BINARY(__vor, V, S, B, x | y)                                     \
  __COMPASS_BINARY(__vxor, V, S, B, x ^ y)                                    \
  __COMPASS_UNARY(__vinv, V, S, B, ~x)                                        \
  __COMPASS_BINARY_BOTH(__vbclr, V, V, S, B, x & ~y)                          \
  __COMPASS_BINARY_BOTH(__vbset, V, V, S, B, x | ~y)                          \
  __COMPASS_FN B __vceq(V x, V y, B m) { return m & __builtin_convertvector(x == y, B); }  \
  __COMPASS_FN B __vcneq(V x, V y, B m) { return m & __builtin_convertvector(x != y, B); } \
  __COMPASS_FN B __vcge(V x, V y, B m) { return m & __builtin_convertvector(x >= y, B); }  \
  __COMPASS_FN B __vcgt(V x, V y, B m) { return m & __builtin_convertvector(x > y, B); }   \
  __COMPASS_FN B __vcle(V x, V y, B m) { return m & __builtin_convertvector(x <= y, B); }  \
  __COMPASS_FN B __vclt(V x, V y, B m) { return m & __builtin_convertvector(x < y, B); }
__COMPASS_INTS(X)
#undef X

/* bfloat16 has no vector compare of its own in clang: compare the exact float values. */
__COMPASS_FN half16 __compass_ordered(half16 x) { return x; }
__COMPASS_FN float8 __compass_ordered(float8 x) { return x; }
__COMPASS_FN __float16 __compass_ordered(bf1616 x) {
  return __builtin_astype(__builtin_convertvector(as_ushort16(x), __uint16) << 16u, __float16);
}
#define __COMPASS_COMPARE(V, B, x, op, y) \
  __builtin_convertvector(__compass_ordered(x) op __compass_ordered(y), B)
#define X(V, E, L, S, U, B)                                                                        \
  __COMPASS_FN B __vqeq(V x, V y, B m) { return m & __COMPASS_COMPARE(V, B, x, ==, y); }           \
  __COMPASS_FN B __vqne(V x, V y, B m) { return m & __COMPASS_COMPARE(V, B, x, !=, y); }           \
  __COMPASS_FN B __vqge(V x, V y, B m) { return m & __COMPASS_COMPARE(V, B, x, >=, y); }           \
  __COMPASS_FN B __vqgt(V x, V y, B m) { return m & __COMPASS_COMPARE(V, B, x, >, y); }            \
  __COMPASS_FN B __vqle(V x, V y, B m) { return m & __COMPASS_COMPARE(V, B, x, <=, y); }           \
  __COMPASS_FN B __vqlt(V x, V y, B m) { return m & __COMPASS_COMPARE(V, B, x, <, y); }
__COMPASS_FLOATS(X)
#undef X

/* Mask algebra. Inactive lanes are false. */
#define X(V, E, L, S, U, B)                                             \
  __COMPASS_FN V __vand(V x, V y, V m) { return m & x & y; }            \
  __COMPASS_FN V __vor(V x, V y, V m) { return m & (x | y); }           \
  __COMPASS_FN V __vxor(V x, V y, V m) { return m & (x ^ y); }          \
  __COMPASS_FN V __vinv(V x, V m) { return m & ~x; }                    \
  __COMPASS_FN V __vnand(V x, V y, V m) { return m & ~(x & y); }        \
  __COMPASS_FN V __vnor(V x, V y, V m) { return m & ~(x | y); }         \
  __COMPASS_FN V __vbclr(V x, V y, V m) { return m & x & ~y; }          \
  __COMPASS_FN V __vbset(V x, V y, V m) { return m & (x | ~y); }
__COMPASS_MASKS(X)
#undef X

/* A mask as one bit per lane, whether all or any are active, and how many. */
#define __COMPASS_BIT0 0x0101010101010101ul
#ifdef __AVX2__
typedef char __compass_m32 __attribute__((vector_size(32)));
typedef char __compass_m16 __attribute__((vector_size(16)));
typedef float __compass_m8 __attribute__((vector_size(32)));
__COMPASS_FN uint __compass_predicate(bool32 m) {
  return (uint)__builtin_ia32_pmovmskb256(__builtin_astype(m << (char)7, __compass_m32));
}
__COMPASS_FN ushort __compass_predicate(bool16 m) {
  return (ushort)__builtin_ia32_pmovmskb128(__builtin_astype(m << (char)7, __compass_m16));
}
__COMPASS_FN uchar __compass_predicate(bool8 m) {
  return (uchar)__builtin_ia32_movmskps256(__builtin_astype(__COMPASS_COND(int8, m), __compass_m8));
}
#endif
__COMPASS_FN bool __vandr(bool8 m) { return (__builtin_astype(m, ulong) & __COMPASS_BIT0) == __COMPASS_BIT0; }
__COMPASS_FN bool __vorr(bool8 m) { return (__builtin_astype(m, ulong) & __COMPASS_BIT0) != 0; }
#if defined(__AVX2__) && !defined(__COMPASS_CHECK_VALUES)
__COMPASS_FN bool __vandr(bool16 m) { return __compass_predicate(m) == 0xffff; }
__COMPASS_FN bool __vandr(bool32 m) { return __compass_predicate(m) == 0xffffffff; }
__COMPASS_FN bool __vorr(bool16 m) { return __compass_predicate(m) != 0; }
__COMPASS_FN bool __vorr(bool32 m) { return __compass_predicate(m) != 0; }
#else
__COMPASS_FN bool __vandr(bool16 m) { return __vandr((bool8)(m.lo & m.hi)); }
__COMPASS_FN bool __vandr(bool32 m) { return __vandr((bool16)(m.lo & m.hi)); }
__COMPASS_FN bool __vorr(bool16 m) { return __vorr((bool8)(m.lo | m.hi)); }
__COMPASS_FN bool __vorr(bool32 m) { return __vorr((bool16)(m.lo | m.hi)); }
#endif
__COMPASS_FN int __compass_active(bool8 m) { return __builtin_popcountl(__builtin_astype(m, ulong) & __COMPASS_BIT0); }
__COMPASS_FN int __compass_active(bool16 m) { return __compass_active(m.lo) + __compass_active(m.hi); }
__COMPASS_FN int __compass_active(bool32 m) { return __compass_active(m.lo) + __compass_active(m.hi); }

/* Masks from a 32-bit predicate: lane i of L is bit i * (32 / L).

   The predicate is hidden from the optimizer. What clang 23 makes of constants that a constant mask selects is wrong in
   places: it joins the constants of two `or`, and of shifts by GFNI, though lanes between them were replaced. */
#define __COMPASS_HIDDEN(u) __asm__("" : "+r"(u))
#define __COMPASS_ALL_OF(u, mask) (__builtin_constant_p(u) && ((u) & (mask)) == (mask)) /* nothing to select */
#define __COMPASS_PREDICATE_BIT(i, L) (1u << ((i) * (32 / (L))))
typedef __COMPASS_VECTOR(uint, 32) __uint32;
__COMPASS_FN bool8 __vmov_w(uint u) {
  if (__COMPASS_ALL_OF(u, 0x11111111u)) return (bool8)(char)-1;
  __COMPASS_HIDDEN(u);
  uint8 bits = (uint8)(__COMPASS_SEQ_8(__COMPASS_PREDICATE_BIT, 8));
  return __builtin_convertvector(((uint8)u & bits) != 0u, bool8);
}
__COMPASS_FN bool16 __vmov_h(uint u) {
  if (__COMPASS_ALL_OF(u, 0x55555555u)) return (bool16)(char)-1;
  __COMPASS_HIDDEN(u);
  __uint16 bits = (__uint16)(__COMPASS_SEQ_16(__COMPASS_PREDICATE_BIT, 16));
  return __builtin_convertvector(((__uint16)u & bits) != 0u, bool16);
}
__COMPASS_FN bool32 __vmov_b(uint u) {
  if (__COMPASS_ALL_OF(u, 0xffffffffu)) return (bool32)(char)-1;
  __COMPASS_HIDDEN(u);
  __uint32 bits = (__uint32)(__COMPASS_SEQ_32(__COMPASS_PREDICATE_BIT, 32));
  return __builtin_convertvector(((__uint32)u & bits) != 0u, bool32);
}

#endif
