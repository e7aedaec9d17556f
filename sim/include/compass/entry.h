/* How the simulator enters a kernel.
 *
 * The cc stage appends one entry function per kernel after the kernel text. For
 *     __kernel void vadd(__global int* a, __global int* b, int n)
 * it writes
 *     __COMPASS_ENTRY(__compass_entry_vadd) {
 *       vadd(__COMPASS_POINTER(__global int, 0), __COMPASS_POINTER(__global int, 1), __COMPASS_SCALAR(int, 2));
 *     }
 *
 * __COMPASS_ENTRY(symbol)        head of the function `void symbol(const __global void *pp)`, the only symbol seen from
 *                                outside; at most 47 characters (docs/internals/files.md, aipu.bin).
 * __COMPASS_POINTER(pointee, i)  word i of the parameter block as a pointer; `pointee` is the text before the `*`,
 *                                address space included: `__global half`, `__constant uchar`, `__global int8`.
 * __COMPASS_SCALAR(type, i)      word i as a scalar of char, uchar, short, ushort, int, uint, half, bf16, float, bool
 *                                (value in the low bits; the upper bits are ignored).
 *
 * A device address is a host address: the simulator keeps the low 4 GiB for the device, so 32 bits name any byte.
 *
 * Command line of a kernel (the driver adds -march, -O2, -g, -o):
 *     clang -x cl -cl-std=CL1.2 -cl-no-stdinc -D__AIPUX2__ -I sim/include -c -mcmodel=small -fno-pic -fno-pie
 *           -fmax-type-align=1 -fwrapv -fno-strict-aliasing -fno-strict-float-cast-overflow -ffp-contract=off -cl-fp32-correctly-rounded-divide-sqrt
 *           -fno-convergent-functions
 *           -Xclang -ffloat16-excess-precision=none -Xclang -fbfloat16-excess-precision=none -mno-avx512bf16
 *           -fno-stack-protector -fno-asynchronous-unwind-tables -Wno-pointer-to-int-cast -Wno-uninitialized
 * with -D__AIPUX2__, -D__AIPUX3P__ or -D__AIPUX3S__ for the target family. `compass/dsl.h` can be precompiled with the
 * same flags. (-mno-avx512bf16: that instruction flushes bfloat16 subnormals.)
 */
#ifndef COMPASS_ENTRY_H
#define COMPASS_ENTRY_H

#define __COMPASS_ENTRY(symbol)            \
  void symbol(const __global void *__pp); \
  void symbol(const __global void *__pp)
#define __COMPASS_WORD(i) (((const __global uint *)__pp)[i])
#define __COMPASS_POINTER(pointee, i) ((pointee *)(ulong)__COMPASS_WORD(i))
#define __COMPASS_SCALAR(type, i) __COMPASS_SCALAR_##type(__COMPASS_WORD(i))

#define __COMPASS_SCALAR_char(w) ((char)(w))
#define __COMPASS_SCALAR_uchar(w) ((uchar)(w))
#define __COMPASS_SCALAR_short(w) ((short)(w))
#define __COMPASS_SCALAR_ushort(w) ((ushort)(w))
#define __COMPASS_SCALAR_int(w) ((int)(w))
#define __COMPASS_SCALAR_uint(w) (w)
#define __COMPASS_SCALAR_half(w) as_half((ushort)(w))
#define __COMPASS_SCALAR_bf16(w) as_bf16((ushort)(w))
#define __COMPASS_SCALAR_float(w) as_float(w)
#define __COMPASS_SCALAR_bool(w) ((bool)((w) & 1))

#endif
