/* Type lists, and macros that turn one expression into one function per type of a list.
 *
 * A list calls X(V, E, L, S, U, B): vector, its element, lanes, the signed and the unsigned integer vector of the same
 * shape, the mask. Inside the expressions of the definition macros, V, S, U and so on are these names.
 */
#ifndef COMPASS_LISTS_H
#define COMPASS_LISTS_H

#define __COMPASS_SIGNED(X)               \
  X(char32, char, 32, char32, uchar32, bool32)   \
  X(short16, short, 16, short16, ushort16, bool16) \
  X(int8, int, 8, int8, uint8, bool8)
#define __COMPASS_UNSIGNED(X)             \
  X(uchar32, uchar, 32, char32, uchar32, bool32)   \
  X(ushort16, ushort, 16, short16, ushort16, bool16) \
  X(uint8, uint, 8, int8, uint8, bool8)
#define __COMPASS_FLOATS(X)               \
  X(half16, half, 16, short16, ushort16, bool16)   \
  X(bf1616, bf16, 16, short16, ushort16, bool16)   \
  X(float8, float, 8, int8, uint8, bool8)
/* bool32 and char32 are one type, so only two masks need functions of their own. */
#define __COMPASS_SMALL_MASKS(X)          \
  X(bool16, char, 16, bool16, bool16, bool16)      \
  X(bool8, char, 8, bool8, bool8, bool8)
#define __COMPASS_MASKS(X) X(bool32, char, 32, char32, uchar32, bool32) __COMPASS_SMALL_MASKS(X)
#define __COMPASS_INTS(X) __COMPASS_SIGNED(X) __COMPASS_UNSIGNED(X)
#define __COMPASS_ALL(X) __COMPASS_INTS(X) __COMPASS_FLOATS(X)

/* Mask `m` as -1/0 lanes of the integer vector S. */
#define __COMPASS_COND(S, m) __builtin_convertvector(((m) & (char)1) != (char)0, S)
/* The lanes of x where `c` (-1/0 lanes of S) is true, of y elsewhere; on bits, so NaNs pass unchanged. */
#define __COMPASS_PICK(V, S, c, x, y) \
  __builtin_astype((c) ? __builtin_astype((x), S) : __builtin_astype((y), S), V)
#define __COMPASS_SELECT(V, S, m, x, y) __COMPASS_PICK(V, S, __COMPASS_COND(S, m), x, y)

/* Function heads shared by many builtins; `RESULT` is an expression in the parameters. */
#define __COMPASS_UNARY(name, V, S, B, RESULT) \
  __COMPASS_FN V name(V r, V x, B m) { return __COMPASS_SELECT(V, S, m, RESULT, r); }
#define __COMPASS_BINARY(name, V, S, B, RESULT) \
  __COMPASS_FN V name(V r, V x, V y, B m) { return __COMPASS_SELECT(V, S, m, RESULT, r); }
/* (x, y) and (r, x, y, m) forms, second operand of type Y. */
#define __COMPASS_BINARY_BOTH(name, V, Y, S, B, RESULT)     \
  __COMPASS_FN V name(V x, Y y) { return RESULT; }          \
  __COMPASS_FN V name(V r, V x, Y y, B m) { return __COMPASS_SELECT(V, S, m, RESULT, r); }

/* Shuffle indices: F(i, L) for every lane i of an L-lane result. */
#define __COMPASS_SEQ_4(F, L, o) F((o), L), F((o) + 1, L), F((o) + 2, L), F((o) + 3, L)
#define __COMPASS_SEQ_8_AT(F, L, o) __COMPASS_SEQ_4(F, L, o), __COMPASS_SEQ_4(F, L, (o) + 4)
#define __COMPASS_SEQ_16_AT(F, L, o) __COMPASS_SEQ_8_AT(F, L, o), __COMPASS_SEQ_8_AT(F, L, (o) + 8)
#define __COMPASS_SEQ_8(F, L) __COMPASS_SEQ_8_AT(F, L, 0)
#define __COMPASS_SEQ_16(F, L) __COMPASS_SEQ_16_AT(F, L, 0)
#define __COMPASS_SEQ_32(F, L) __COMPASS_SEQ_16_AT(F, L, 0), __COMPASS_SEQ_16_AT(F, L, 16)

#ifdef __COMPASS_CHECK
/* In kernels compiled for checks the engine hears of integers that are divided by zero. */
void __compass_divided_by_zero(void);
#define __COMPASS_NOT_BY_ZERO(is_zero) if (is_zero) __compass_divided_by_zero();
#else
#define __COMPASS_NOT_BY_ZERO(is_zero)
#endif

/* For each lane, unrolled completely so that vectors stay in registers. */
#define __COMPASS_LANES(i, L) _Pragma("unroll") for (int i = 0; i < (L); i++)

#endif
