#include <compass/dsl.h>

__kernel void row_scale(__global half* s2, __global half* d2, int rows, int cols);

__kernel void row_scale(__global half* s2, __global half* d2, int rows, int cols) {
  for (int r = 0; r < rows; r += 1) {
    half k = max(s2[(r * cols)], (half)0x1p+0f/*1.000000e+00*/);
    for (int c = 0; c < cols; c += 1) {
      int cse_var_1 = ((r * cols) + c);
      d2[cse_var_1] = (half)(s2[cse_var_1] * k);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
