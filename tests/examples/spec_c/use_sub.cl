#include <compass/dsl.h>

__kernel void use_sub(__global float* a, __global int* idx, __global float* out, int n);
int use_sub_pick(__global int* p, int i);
float8 use_sub_soft(float8 v, float lo);

__kernel void use_sub(__global float* a, __global int* idx, __global float* out, int n) {
  for (int i = 0; i < n; i += 1) {
    int j = use_sub_pick(idx, i);
    __vstore(use_sub_soft(__vload((__global float8*)(a + (j * 8)), ALL_TRUE_w), -0x1.4p+1f/*-2.500000e+00*/), (__global float8*)(out + (i * 8)), ALL_TRUE_w);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

int use_sub_pick(__global int* p, int i) {
  if (p[i] < 0) {
    return 0;
  }
  return p[i];
}

float8 use_sub_soft(float8 v, float lo) {
  float8 t = __vmax(t, v, (float8)lo, ALL_TRUE_w);
  return __vdiv((float8)0x0p+0f/*0.000000e+00*/, t, (__vabs((float8)0x0p+0f/*0.000000e+00*/, t, ALL_TRUE_w) + (float8)0x1p+0f/*1.000000e+00*/), ALL_TRUE_w);
}
