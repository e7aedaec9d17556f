#include <compass/dsl.h>

__kernel void vadd(__global int* a, __global int* b);

__kernel void vadd(__global int* a, __global int* b) {
  int8 va = __vload((__global int8*)a, ALL_TRUE_w);
  int8 vb = (va + (int8)1);
  __vstore(vb, (__global int8*)b, ALL_TRUE_w);
  barrier(CLK_LOCAL_MEM_FENCE);
}
