/* The header that a kernel includes: the Compass builtins on clang vector types, for running the kernel on the host.
 *
 * types.h    scalar and vector types, masks, reinterpretation       lists.h    type lists and macros that define
 * entry.h    how the simulator enters a kernel                                 one function per type
 * logic.h    select, bitwise, mask and compare operations           convert.h  casts, widening, narrowing shifts
 * arith.h    element-wise arithmetic and shifts                     horiz.h    dot products, reductions, 4x4 matrices
 * permute.h  lane movement                                          math.h     exp, log, sin, ...
 * memory.h   vector loads and stores                                scalar.h   scalar functions
 * device.h   work items, barrier, events, DMA, AIFF, profiling      printf.h   printf
 */
#ifndef COMPASS_DSL_H
#define COMPASS_DSL_H

#if !defined(__AIPUX2__) && !defined(__AIPUX3P__) && !defined(__AIPUX3S__)
#error "unsupported platform: define one of __AIPUX2__, __AIPUX3P__, __AIPUX3S__"
#endif
#if !defined(__clang__) || !defined(__OPENCL_C_VERSION__)
#error "kernels are compiled by clang as OpenCL C: -x cl -cl-std=CL1.2 -cl-no-stdinc"
#endif

#include <compass/types.h>
#include <compass/lists.h>
#include <compass/entry.h>
#include <compass/logic.h>
#include <compass/permute.h>
#include <compass/arith.h>
#include <compass/convert.h>
#include <compass/horiz.h>
#include <compass/memory.h>
#include <compass/scalar.h>
#include <compass/math.h>
#include <compass/device.h>
#include <compass/atomics.h>
#include <compass/printf.h>

#endif
