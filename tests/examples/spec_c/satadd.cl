#include <compass/dsl.h>

__kernel void satadd(__global short* x, __global short* y, int n);

__kernel void satadd(__global short* x, __global short* y, int n) {
  int full = (n >> 4);
  for (int b = 0; b < full; b += 1) {
    int cse_var_1 = (b * 16);
    __vstore(__vadds(__vload((__global short16*)(y + cse_var_1), ALL_TRUE_h), __vload((__global short16*)(x + cse_var_1), ALL_TRUE_h), __vload((__global short16*)(y + cse_var_1), ALL_TRUE_h), ALL_TRUE_h), (__global short16*)(y + cse_var_1), ALL_TRUE_h);
  }
  int rest = (n & 15);
  if (0 < rest) {
    int cse_var_2 = (full * 16);
    bool16 m = __vmov_h((((((rest << 1) >> 5) ^ 1) << (rest << 1)) - 1));
    short16 xv = __vload((__global short16*)(x + cse_var_2), m);
    short16 yv = __vload((__global short16*)(y + cse_var_2), m);
    __vstore(__vadds((short16)(short)0, xv, yv, m), (__global short16*)(y + cse_var_2), m);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
