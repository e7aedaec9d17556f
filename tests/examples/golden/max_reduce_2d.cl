#include <compass/dsl.h>

__kernel void max_reduce_2d(__global float* src, __global float* out, int rows, int cols);

__kernel void max_reduce_2d(__global float* src, __global float* out, int rows, int cols) {
  int full = ((cols >> 3) * 8);
  int rest = (cols & 7);
  bool8 mask = __vmov_w((((((rest << 2) >> 5) ^ 1) << (rest << 2)) - 1));
  for (int r = get_local_id(0); r < get_local_id(0)+(rows - get_local_id(0)); r += get_local_size(0)) {
    float8 best = (float8)-INFINITY;
    for (int c = 0; c < full; c += 8) {
      best = __vmax((float8)0x0p+0f/*0.000000e+00*/, best, __vload((__global float8*)(src + ((r * cols) + c)), ALL_TRUE_w), ALL_TRUE_w);
    }
    if (0 < rest) {
      float8 tail = __vload((__global float8*)(src + ((r * cols) + full)), mask);
      best = __vmax(best, best, tail, mask);
    }
    out[r] = __vrpmax((float8)0x0p+0f/*0.000000e+00*/, best, ALL_TRUE_w)[0];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
