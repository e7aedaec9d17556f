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
  __COMPASS_SHUFFLE(__vexte, V, L, __COMPASS_EVEN)      \
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

#define X(V, E, L, S, U, B) \
  __COMPASS_FN V __vprevs(V m) { return __builtin_shufflevector(m, m, __COMPASS_SEQ_##L(__COMPASS_REVERSE, L)); }
__COMPASS_MASKS(X)
#undef X

__COMPASS_FN bool16 __vbxul(bool32 m) { return m.lo; }
__COMPASS_FN bool16 __vbxuh(bool32 m) { return m.hi; }
__COMPASS_FN bool8 __vbxul(bool16 m) { return m.lo; }
__COMPASS_FN bool8 __vbxuh(bool16 m) { return m.hi; }

/* Lanes s .. s+L-1 of the 2 * L lanes of (x, y), 0 <= s <= L; other s are reduced modulo L. */
#define X(V, E, L, S, U, B)                                                                                   \
  __COMPASS_FN V __vsldl(V x, V y, int s) {                                                                   \
    E lanes[2 * L];                                                                                           \
    __builtin_memcpy(lanes, &x, sizeof(V));                                                                   \
    __builtin_memcpy(lanes + L, &y, sizeof(V));                                                               \
    V out;                                                                                                    \
    __builtin_memcpy(&out, lanes + (s & (L - 1)), sizeof(V));                                                 \
    return out;                                                                                               \
  }                                                                                                           \
  __COMPASS_FN V __vshfl(V x, int s) { return __vsldl(x, x, s); }                                             \
  __COMPASS_FN V __vrevs(V x) { return __builtin_shufflevector(x, x, __COMPASS_SEQ_##L(__COMPASS_REVERSE, L)); } \
  __COMPASS_FN V __vreplic(V x, int i) { return (V)x[i & (L - 1)]; }
__COMPASS_ALL(X)
#undef X

/* Table look-up: an index past the table gives 0. */
#define __COMPASS_LOOKUP(V, E, L, U, COUNT, COPY)                                \
  E table[(COUNT) * L];                                                          \
  COPY V out;                                                                    \
  __COMPASS_LANES(k, L) {                                                        \
    uint at = i[k];                                                              \
    out[k] = at < (COUNT) * L ? table[at & (((COUNT) > 2 ? 4 : 2) * L - 1)] : (E)0; \
  }                                                                              \
  return out;
#define __COMPASS_COPY(n, t, L) __builtin_memcpy(table + (n) * L, &t, sizeof(t));
#define X(V, E, L, S, U, B)                                                                                     \
  __COMPASS_FN V __vtbl(V a, V b, U i) {                                                                        \
    __COMPASS_LOOKUP(V, E, L, U, 2, __COMPASS_COPY(0, a, L) __COMPASS_COPY(1, b, L))                            \
  }                                                                                                             \
  __COMPASS_FN V __vtbl(V a, V b, V c, U i) {                                                                   \
    __COMPASS_LOOKUP(V, E, L, U, 3, __COMPASS_COPY(0, a, L) __COMPASS_COPY(1, b, L) __COMPASS_COPY(2, c, L))    \
  }                                                                                                             \
  __COMPASS_FN V __vtbl(V a, V b, V c, V d, U i) {                                                              \
    __COMPASS_LOOKUP(V, E, L, U, 4, __COMPASS_COPY(0, a, L) __COMPASS_COPY(1, b, L) __COMPASS_COPY(2, c, L)     \
                     __COMPASS_COPY(3, d, L))                                                                   \
  }                                                                                                             \
  __COMPASS_FN V __vperm(V a, V b, U i) { return __vtbl(a, b, i); }
__COMPASS_ALL(X)
#undef X

/* Active lanes of x packed to the front, then lanes of y in order. */
#define X(V, E, L, S, U, B)                                       \
  __COMPASS_FN V __vcompc(V x, V y, B m) {                        \
    E lanes[2 * L];                                               \
    int n = 0;                                                    \
    __COMPASS_LANES(i, L) {                                       \
      lanes[n] = x[i];                                            \
      n += m[i] & 1;                                              \
    }                                                             \
    __builtin_memcpy(lanes + n, &y, sizeof(V));                   \
    V out;                                                        \
    __builtin_memcpy(&out, lanes, sizeof(V));                     \
    return out;                                                   \
  }                                                               \
  __COMPASS_FN V __vcompt(V x, B m) { return __vcompc(x, (V)(E)0, m); }
__COMPASS_ALL(X)
#undef X

#endif
