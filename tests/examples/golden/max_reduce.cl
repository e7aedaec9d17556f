#include <compass/dsl.h>

__kernel void max_reduce(__global int* x, __global int* out, int n);

__kernel void max_reduce(__global int* x, __global int* out, int n) {
  __local int partial_buf[4];
  __local int* partial = partial_buf;
  int tec = get_local_id(0);
  int8 best = (int8)(int)-2147483648;
  int full = (n >> 3);
  for (int i = tec; i < tec+(full - tec); i += get_local_size(0)) {
    best = __vmax((int8)0, best, __vload((__global int8*)(x + (i * 8)), ALL_TRUE_w), ALL_TRUE_w);
  }
  int rest = (n & 7);
  if (0 < rest) {
    bool8 mask = __vmov_w((((((rest << 2) >> 5) ^ 1) << (rest << 2)) - 1));
    best = __vmax(best, best, __vload((__global int8*)(x + (full * 8)), mask), mask);
  }
  partial[tec] = __vrpmax((int8)0, best, ALL_TRUE_w)[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (tec == 0) {
    int result = partial[0];
    for (int t = 1; t < 1+3; t += 1) {
      result = max(result, partial[t]);
    }
    out[0] = result;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
