/* printf: each argument travels with its type, so that the engine formats by what it got, as the device does. */
#ifndef COMPASS_PRINTF_H
#define COMPASS_PRINTF_H

/* One argument; sim/engine/print.c has the same struct. `kind` is i signed, u unsigned, h half, b bfloat16, f float,
 * p pointer; `size` the bytes of one element. */
struct __compass_value {
  uchar kind, size;
  ushort lanes;
  uint unused;
  uchar bytes[32];
};
/* values[0] is the format string. */
void __compass_printf(uint count, const struct __compass_value *values);

#define __COMPASS_VALUE(T, tag, element, count)                            \
  __COMPASS_FN struct __compass_value __compass_value(T x) {               \
    struct __compass_value v = {tag, sizeof(element), count, 0, {0}};      \
    __builtin_memcpy(v.bytes, &x, sizeof(T));                              \
    return v;                                                              \
  }
#define X(T, E, tag, L)               \
  __COMPASS_VALUE(E, tag, E, 1)       \
  __COMPASS_VALUE(T, tag, E, L)
X(char32, char, 'i', 32)
X(uchar32, uchar, 'u', 32)
X(short16, short, 'i', 16)
X(ushort16, ushort, 'u', 16)
X(int8, int, 'i', 8)
X(uint8, uint, 'u', 8)
X(half16, half, 'h', 16)
X(bf1616, bf16, 'b', 16)
X(float8, float, 'f', 8)
#undef X
__COMPASS_VALUE(long, 'i', long, 1)
__COMPASS_VALUE(bool, 'u', bool, 1)
__COMPASS_VALUE(const void *, 'p', const void *, 1)
__COMPASS_VALUE(const __global void *, 'p', const __global void *, 1)
__COMPASS_VALUE(const __local void *, 'p', const __local void *, 1)
__COMPASS_VALUE(__constant void *, 'p', __constant void *, 1)

/* The list of arguments, each through __compass_value. */
#define __COMPASS_PARENS ()
#define __COMPASS_EXPAND(...) __COMPASS_EXPAND3(__COMPASS_EXPAND3(__COMPASS_EXPAND3(__VA_ARGS__)))
#define __COMPASS_EXPAND3(...) __COMPASS_EXPAND2(__COMPASS_EXPAND2(__COMPASS_EXPAND2(__VA_ARGS__)))
#define __COMPASS_EXPAND2(...) __COMPASS_EXPAND1(__COMPASS_EXPAND1(__COMPASS_EXPAND1(__VA_ARGS__)))
#define __COMPASS_EXPAND1(...) __VA_ARGS__
#define __COMPASS_VALUES_AGAIN() __COMPASS_VALUES
#define __COMPASS_VALUES(x, ...) \
  __compass_value(x) __VA_OPT__(, __COMPASS_VALUES_AGAIN __COMPASS_PARENS (__VA_ARGS__))
#define printf(...)                                                                                   \
  do {                                                                                                \
    const struct __compass_value __values[] = {__COMPASS_EXPAND(__COMPASS_VALUES(__VA_ARGS__))};      \
    __compass_printf(sizeof(__values) / sizeof(__values[0]), __values);                               \
  } while (0)

#endif
