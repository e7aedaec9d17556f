/* Lane movement: extract, interleave, reverse, rotate, table look-up, compress. */
#ifndef COMPASS_PERMUTE_H
#define COMPASS_PERMUTE_H

/* Lane i of the result, as an index into the 2 * L lanes of (x, y). */
#define __COMPASS_EVEN(i, L) (2 * (i))
#define __COMPASS_ODD(i, L) (2 * (i) + 1)
#define __COMPASS_LOW(i, L) ((i) < (L) / 2 ? (i) : (L) / 2 + (i))
#define __COMPASS_HIGH(i, L) ((i) < (L) / 2 ? (L) / 2 + (i) : (L) + (i))
#define __COMPASS_ZIP_LOW(i, L) ((i) % 2 * (L) + (i) / 2)
#define __COMPASS_ZIP_HIGH(i, L) ((i) % 2 * (L) + (L) / 2 + (i) / 2)
#define __COMPASS_ZIP_EVEN(i, L) ((i) % 2 * (L) + (i) / 2 * 2)
#define __COMPASS_ZIP_ODD(i, L) ((i) % 2 * (L) + (i) / 2 * 2 + 1)
#define __COMPASS_REVERSE(i, L) ((L) - 1 - (i))

#define __COMPASS_SHUFFLE(name, V, L, INDEX) \
  __COMPASS_FN V name(V x, V y) { return __builtin_shufflevector(x, y, __COMPASS_SEQ_##L(INDEX, L)); }
#define X(V, E, L, S, U, B)                             \
  __COMPASS_SHUFFLE(__vexto, V, L, __COMPASS_ODD)       \
  __COMPASS_SHUFFLE(__vextl, V, L, __COMPASS_LOW)       \
  __COMPASS_SHUFFLE(__vexth, V, L, __COMPASS_HIGH)      \
  __COMPASS_SHUFFLE(__vzipl, V, L, __COMPASS_ZIP_LOW)   \
  __COMPASS_SHUFFLE(__vziph, V, L, __COMPASS_ZIP_HIGH)  \
  __COMPASS_SHUFFLE(__vzipe, V, L, __COMPASS_ZIP_EVEN)  \
  __COMPASS_SHUFFLE(__vzipo, V, L, __COMPASS_ZIP_ODD)
__COMPASS_ALL(X)
__COMPASS_SMALL_MASKS(X)
#undef X

/* Vectors as the host's own instructions take them, by lanes. */
typedef char __compass_v32 __attribute__((vector_size(32)));
typedef short __compass_v16 __attribute__((vector_size(32)));
typedef int __compass_v8 __attribute__((vector_size(32)));

/* Even lanes. Hosts that move bytes freely have one instruction, hidden from clang: it would join the vectors, and what
 * they are computed by, to vectors of 512 bits, which takes more of the few units that move lanes than it saves elsewhere.
 * Other hosts narrow what is known to be narrow with one instruction, if they see that the lanes are cut. */
#define X(V, E, L, S, U, B) __COMPASS_SHUFFLE(__vexte, V, L, __COMPASS_EVEN)
__COMPASS_FLOATS(X)
__COMPASS_SMALL_MASKS(X)
X(int8, int, 8, int8, uint8, bool8)
X(uint8, uint, 8, int8, uint8, bool8)
#undef X
#if defined(__AVX512VBMI__) && defined(__AVX512VL__)
#define __COMPASS_PICK_EVEN(V, U, L, name)                                                                  \
  __COMPASS_FN V __vexte(V x, V y) {                                                                        \
    __compass_v##L low = __builtin_astype(x, __compass_v##L), high = __builtin_astype(y, __compass_v##L);   \
    __compass_v##L even = __builtin_astype((U)(__COMPASS_SEQ_##L(__COMPASS_EVEN, L)), __compass_v##L);      \
    __asm__("" : "+v"(even));                                                                               \
    __asm__("" : "+v"(low), "+v"(high));                                                                    \
    return __builtin_astype(name(low, even, high), V);                                                      \
  }
__COMPASS_PICK_EVEN(char32, uchar32, 32, __builtin_ia32_vpermi2varqi256)
__COMPASS_PICK_EVEN(uchar32, uchar32, 32, __builtin_ia32_vpermi2varqi256)
__COMPASS_PICK_EVEN(short16, ushort16, 16, __builtin_ia32_vpermi2varhi256)
__COMPASS_PICK_EVEN(ushort16, ushort16, 16, __builtin_ia32_vpermi2varhi256)
#else
#define __COMPASS_CUT(V, W, WIDE)                                                                           \
  __COMPASS_FN V __vexte(V x, V y) {                                                                        \
    return __builtin_convertvector((WIDE)(__builtin_astype(x, W), __builtin_astype(y, W)), V);              \
  }
__COMPASS_CUT(char32, short16, __short32)
__COMPASS_CUT(uchar32, ushort16, __ushort32)
__COMPASS_CUT(short16, int8, __int16)
__COMPASS_CUT(ushort16, uint8, __uint16)
#endif

#define X(V, E, L, S, U, B) \
  __COMPASS_FN V __vprevs(V m) { return __builtin_shufflevector(m, m, __COMPASS_SEQ_##L(__COMPASS_REVERSE, L)); }
__COMPASS_MASKS(X)
#undef X

__COMPASS_FN bool16 __vbxul(bool32 m) { return m.lo; }
__COMPASS_FN bool16 __vbxuh(bool32 m) { return m.hi; }
__COMPASS_FN bool8 __vbxul(bool16 m) { return m.lo; }
__COMPASS_FN bool8 __vbxuh(bool16 m) { return m.hi; }

/* __compass_permute(x, y, i): lane k is lane i[k] of the 2 * L lanes of (x, y), i[k] modulo 2 * L.
 * __compass_slide(x, y, s): lanes s .. s+L-1 of them, s modulo L.
 * __compass_compress(x, m): the active lanes, then 0. */
#if defined(__AVX512VBMI__) && defined(__AVX512VBMI2__) && defined(__AVX512VL__) && !defined(__COMPASS_CHECK_VALUES)
#define __COMPASS_PERMUTE_32 __builtin_ia32_vpermi2varqi256
#define __COMPASS_PERMUTE_16 __builtin_ia32_vpermi2varhi256
#define __COMPASS_PERMUTE_8 __builtin_ia32_vpermi2vard256
#define __COMPASS_COMPRESS_32 __builtin_ia32_compressqi256_mask
#define __COMPASS_COMPRESS_16 __builtin_ia32_compresshi256_mask
#define __COMPASS_COMPRESS_8 __builtin_ia32_compresssi256_mask
#define __COMPASS_RAW(L, x) __builtin_astype((x), __compass_v##L)
#define __COMPASS_SELF(i, L) (i)
#define __COMPASS_ELEMENT_32 char
#define __COMPASS_ELEMENT_16 short
#define __COMPASS_ELEMENT_8 int
#define X(V, E, L, S, U, B)                                                                                      \
  __COMPASS_FN V __compass_permute(V x, V y, U i) {                                                              \
    return __builtin_astype(                                                                                     \
        __COMPASS_PERMUTE_##L(__COMPASS_RAW(L, x), __COMPASS_RAW(L, i), __COMPASS_RAW(L, y)), V);                \
  }                                                                                                              \
  __COMPASS_FN V __compass_slide(V x, V y, int s) {                                                              \
    S lanes = (S)(__COMPASS_SEQ_##L(__COMPASS_SELF, L));                                                         \
    return __compass_permute(x, y, __builtin_astype(lanes + (S)(__COMPASS_ELEMENT_##L)(s & (L - 1)), U));        \
  }                                                                                                              \
  __COMPASS_FN V __compass_compress(V x, B m) {                                                                  \
    __compass_v##L zero = __COMPASS_RAW(L, (V)(E)0);                                                             \
    return __builtin_astype(__COMPASS_COMPRESS_##L(__COMPASS_RAW(L, x), zero, __compass_predicate(m)), V);       \
  }
#else
#if defined(__AVX2__) && !defined(__COMPASS_CHECK_VALUES)
/* By look-ups of bytes among 16, in both halves of a vector alike, of which the next bits of the index choose. */
#define __COMPASS_FIRST_16(i, L) ((i) % 16)
#define __COMPASS_LAST_16(i, L) (16 + (i) % 16)
__COMPASS_FN __compass_v32 __compass_among_32(__compass_v32 table, __compass_v32 low, __compass_v16 bit4) {
  __compass_v32 first = __builtin_shufflevector(table, table, __COMPASS_SEQ_32(__COMPASS_FIRST_16, 32));
  __compass_v32 last = __builtin_shufflevector(table, table, __COMPASS_SEQ_32(__COMPASS_LAST_16, 32));
  return __builtin_ia32_pblendvb256(__builtin_ia32_pshufb256(first, low), __builtin_ia32_pshufb256(last, low),
                                    __builtin_astype(bit4, __compass_v32));
}
__COMPASS_FN __compass_v32 __compass_permuted_32(__compass_v32 x, __compass_v32 i, __compass_v32 y) {
  __compass_v32 low = i & 15;
  __compass_v16 bit4 = __builtin_astype(i, __compass_v16) << 3, bit5 = __builtin_astype(i, __compass_v16) << 2;
  return __builtin_ia32_pblendvb256(__compass_among_32(x, low, bit4), __compass_among_32(y, low, bit4),
                                    __builtin_astype(bit5, __compass_v32));
}
__COMPASS_FN __compass_v16 __compass_permuted_16(__compass_v16 x, __compass_v16 i, __compass_v16 y) {
  __compass_v16 both = (i & 31) * 0x0202 + 0x0100; /* of the two bytes of a lane */
  return __builtin_astype(
      __compass_permuted_32(__builtin_astype(x, __compass_v32), __builtin_astype(both, __compass_v32),
                            __builtin_astype(y, __compass_v32)),
      __compass_v16);
}
__COMPASS_FN __compass_v8 __compass_permuted_8(__compass_v8 x, __compass_v8 i, __compass_v8 y) {
  __compass_v8 second = (i & 8) != 0;
  return (__builtin_ia32_permvarsi256(y, i) & second) | (__builtin_ia32_permvarsi256(x, i) & ~second);
}
#define X(V, E, L, S, U, B)                                                                                   \
  __COMPASS_FN V __compass_permute(V x, V y, U i) {                                                           \
    return __builtin_astype(__compass_permuted_##L(__builtin_astype(x, __compass_v##L),                       \
                                                   __builtin_astype(i, __compass_v##L),                       \
                                                   __builtin_astype(y, __compass_v##L)), V);                  \
  }
#else
#define X(V, E, L, S, U, B)                                       \
  __COMPASS_FN V __compass_permute(V x, V y, U i) {               \
    E lanes[2 * L];                                               \
    V out;                                                        \
    __builtin_memcpy(lanes, &x, sizeof(V));                       \
    __builtin_memcpy(lanes + L, &y, sizeof(V));                   \
    __COMPASS_LANES(k, L) out[k] = lanes[i[k] & (2 * L - 1)];     \
    return out;                                                   \
  }
#endif
__COMPASS_ALL(X)
#undef X
#define X(V, E, L, S, U, B)                                       \
  __COMPASS_FN V __compass_slide(V x, V y, int s) {               \
    E lanes[2 * L];                                               \
    V out;                                                        \
    __builtin_memcpy(lanes, &x, sizeof(V));                       \
    __builtin_memcpy(lanes + L, &y, sizeof(V));                   \
    __builtin_memcpy(&out, lanes + (s & (L - 1)), sizeof(V));     \
    return out;                                                   \
  }                                                               \
  __COMPASS_FN V __compass_compress(V x, B m) {                   \
    E lanes[2 * L];                                               \
    int n = 0;                                                    \
    V out, zero = (V)(E)0;                                        \
    __COMPASS_LANES(i, L) {                                       \
      lanes[n] = x[i];                                            \
      n += m[i] & 1;                                              \
    }                                                             \
    __builtin_memcpy(lanes + n, &zero, sizeof(V));                \
    __builtin_memcpy(&out, lanes, sizeof(V));                     \
    return out;                                                   \
  }
#endif
__COMPASS_ALL(X)
#undef X

/* Rotation, and table look-up, where an index past the table gives 0. */
#define X(V, E, L, S, U, B)                                                                                     \
  __COMPASS_FN V __vsldl(V x, V y, int s) { return __compass_slide(x, y, s); }                                  \
  __COMPASS_FN V __vshfl(V x, int s) { return __compass_slide(x, x, s); }                                       \
  __COMPASS_FN V __vrevs(V x) { return __builtin_shufflevector(x, x, __COMPASS_SEQ_##L(__COMPASS_REVERSE, L)); } \
  __COMPASS_FN V __vreplic(V x, int i) { return (V)x[i & (L - 1)]; }                                            \
  __COMPASS_FN V __vtbl(V a, V b, U i) {                                                                        \
    S inside = __builtin_astype(i < (U)(2 * L), S);                                                             \
    return __COMPASS_PICK(V, S, inside, __compass_permute(a, b, i), (V)(E)0);                                   \
  }                                                                                                             \
  __COMPASS_FN V __vtbl(V a, V b, V c, V d, U i) {                                                              \
    S low = __builtin_astype(i < (U)(2 * L), S), inside = __builtin_astype(i < (U)(4 * L), S);                  \
    V found = __COMPASS_PICK(V, S, low, __compass_permute(a, b, i), __compass_permute(c, d, i));                \
    return __COMPASS_PICK(V, S, inside, found, (V)(E)0);                                                        \
  }                                                                                                             \
  __COMPASS_FN V __vtbl(V a, V b, V c, U i) { return __vtbl(a, b, c, (V)(E)0, i); }                             \
  __COMPASS_FN V __vperm(V a, V b, U i) { return __vtbl(a, b, i); }
__COMPASS_ALL(X)
#undef X

/* Active lanes of x packed to the front, then lanes of y in order. */
#define X(V, E, L, S, U, B)                                                       \
  __COMPASS_FN V __vcompt(V x, B m) { return __compass_compress(x, m); }          \
  __COMPASS_FN V __vcompc(V x, V y, B m) {                                        \
    E lanes[2 * L];                                                               \
    V out = __compass_compress(x, m);                                             \
    __builtin_memcpy(lanes, &out, sizeof(V));                                     \
    __builtin_memcpy(lanes + __compass_active(m), &y, sizeof(V));                 \
    __builtin_memcpy(&out, lanes, sizeof(V));                                     \
    return out;                                                                   \
  }
__COMPASS_ALL(X)
#undef X

#endif
