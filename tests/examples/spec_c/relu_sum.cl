#include <compass/dsl.h>

__kernel void relu_sum(__global float* x, __global float* y, int n, float bias);

__kernel void relu_sum(__global float* x, __global float* y, int n, float bias) {
  float total = 0x0p+0f/*0.000000e+00*/;
  for (int i = 0; i < n; i += 1) {
    float v = (float)(x[i] + bias);
    if (v < 0x0p+0f/*0.000000e+00*/) {
      y[i] = 0x0p+0f/*0.000000e+00*/;
    } else {
      y[i] = v;
      total = (float)(total + v);
    }
  }
  y[n] = total;
  barrier(CLK_LOCAL_MEM_FENCE);
}
