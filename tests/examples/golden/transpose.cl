#include <compass/dsl.h>

__kernel void transpose(__global float* src, __global float* dst, int h, int w);

__kernel void transpose(__global float* src, __global float* dst, int h, int w) {
  int whole = ((w >> 3) * 8);
  for (int r = get_local_id(0); r < get_local_id(0)+(h - get_local_id(0)); r += get_local_size(0)) {
    for (int c = 0; c < whole; c += 8) {
      __vstore_stride(__vload((__global float8*)(src + ((r * w) + c)), ALL_TRUE_w), (__global float8*)(dst + ((c * h) + r)), (h * 4), ALL_TRUE_w);
    }
    for (int c_1 = whole; c_1 < whole+(w - whole); c_1 += 1) {
      dst[((c_1 * h) + r)] = src[((r * w) + c_1)];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
