/* Scalar and vector types of the dialect, masks, address spaces, reinterpretation. */
#ifndef COMPASS_TYPES_H
#define COMPASS_TYPES_H

#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
/* A kernel is an ordinary host function here, so that it may take `bool` parameters and be called; __local arrays
 * stay what they are: static storage that all TECs share. */
#pragma OPENCL EXTENSION __cl_clang_function_scope_local_variables : enable
#pragma clang fp contract(off)
#define __kernel
#define __lsram /* the TEC's own memory: automatic arrays on the TEC's stack */

#ifdef __COMPASS_CHECK /* clang's checks of alignment ask for that of an element */
#define __COMPASS_VECTOR(T, N) __attribute__((ext_vector_type(N), aligned(sizeof(T)))) T
#else
#define __COMPASS_VECTOR(T, N) __attribute__((ext_vector_type(N))) T
#endif

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef ulong size_t;
typedef __bf16 bf16;

/* The native vectors: 256 bits. */
typedef __COMPASS_VECTOR(char, 32) char32;
typedef __COMPASS_VECTOR(uchar, 32) uchar32;
typedef __COMPASS_VECTOR(short, 16) short16;
typedef __COMPASS_VECTOR(ushort, 16) ushort16;
typedef __COMPASS_VECTOR(int, 8) int8;
typedef __COMPASS_VECTOR(uint, 8) uint8;
typedef __COMPASS_VECTOR(half, 16) half16;
typedef __COMPASS_VECTOR(bf16, 16) bf1616;
typedef __COMPASS_VECTOR(float, 8) float8;

/* Masks: one byte per lane, of which only bit 0 counts. Builtins make 0 and -1, a splat of (bool)1 makes 1. */
typedef __COMPASS_VECTOR(char, 8) bool8;
typedef __COMPASS_VECTOR(char, 16) bool16;
typedef __COMPASS_VECTOR(char, 32) bool32;
#define ALL_TRUE_b (-1)
#define ALL_TRUE_h (-1)
#define ALL_TRUE_w (-1)

/* Helpers of the headers only: double width, half length. */
typedef __COMPASS_VECTOR(char, 16) __char16;
typedef __COMPASS_VECTOR(uchar, 16) __uchar16;
typedef __COMPASS_VECTOR(short, 8) __short8;
typedef __COMPASS_VECTOR(ushort, 8) __ushort8;
typedef __COMPASS_VECTOR(int, 4) __int4;
typedef __COMPASS_VECTOR(uint, 4) __uint4;
typedef __COMPASS_VECTOR(short, 32) __short32;
typedef __COMPASS_VECTOR(ushort, 32) __ushort32;
typedef __COMPASS_VECTOR(int, 16) __int16;
typedef __COMPASS_VECTOR(uint, 16) __uint16;
typedef __COMPASS_VECTOR(long, 4) __long4;
typedef __COMPASS_VECTOR(ulong, 4) __ulong4;
typedef __COMPASS_VECTOR(long, 8) __long8;
typedef __COMPASS_VECTOR(ulong, 8) __ulong8;
typedef __COMPASS_VECTOR(long, 16) __long16;
typedef __COMPASS_VECTOR(half, 8) __half8;
typedef __COMPASS_VECTOR(bf16, 8) __bf168;
typedef __COMPASS_VECTOR(float, 16) __float16;
typedef __COMPASS_VECTOR(float, 32) __float32;
typedef __COMPASS_VECTOR(double, 8) __double8;
typedef __COMPASS_VECTOR(char, 4) __bool4;

#define NULL ((void *)0)
#define true 1
#define false 0
#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))

#define _CLC_OVERLOAD __attribute__((overloadable))
#define _CLC_INLINE static inline __attribute__((always_inline))
#define _CLC_NOINLINE __attribute__((noinline))
/* Builtins have no debug information: their instructions belong to the kernel line that calls them. */
#define __COMPASS_FN static inline __attribute__((overloadable, always_inline, nodebug))

#define as_char(x) __builtin_astype((x), char)
#define as_uchar(x) __builtin_astype((x), uchar)
#define as_short(x) __builtin_astype((x), short)
#define as_ushort(x) __builtin_astype((x), ushort)
#define as_half(x) __builtin_astype((x), half)
#define as_bf16(x) __builtin_astype((x), bf16)
#define as_float(x) __builtin_astype((x), float)
#define as_char32(x) __builtin_astype((x), char32)
#define as_uchar32(x) __builtin_astype((x), uchar32)
#define as_short16(x) __builtin_astype((x), short16)
#define as_ushort16(x) __builtin_astype((x), ushort16)
#define as_int8(x) __builtin_astype((x), int8)
#define as_uint8(x) __builtin_astype((x), uint8)
#define as_half16(x) __builtin_astype((x), half16)
#define as_bf1616(x) __builtin_astype((x), bf1616)
#define as_float8(x) __builtin_astype((x), float8)

/* as_int and as_uint also take pointers, whose device address has 32 bits. */
#define __COMPASS_AS_INT(type)                                     \
  __COMPASS_FN int as_int(type x) { return (int)(ulong)(x); }       \
  __COMPASS_FN uint as_uint(type x) { return (uint)(ulong)(x); }
__COMPASS_AS_INT(int)
__COMPASS_AS_INT(uint)
__COMPASS_AS_INT(const void *)
__COMPASS_AS_INT(const __global void *)
__COMPASS_AS_INT(const __local void *)
__COMPASS_AS_INT(__constant void *)
__COMPASS_FN int as_int(float x) { return __builtin_astype(x, int); }
__COMPASS_FN uint as_uint(float x) { return __builtin_astype(x, uint); }
#undef __COMPASS_AS_INT

#endif
