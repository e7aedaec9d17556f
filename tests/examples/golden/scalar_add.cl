#include <compass/dsl.h>

__kernel void scalar_add(__global int* a, __global int* b, __global int* c, int n);

__kernel void scalar_add(__global int* a, __global int* b, __global int* c, int n) {
  for (int i = get_local_id(0); i < get_local_id(0)+(n - get_local_id(0)); i += get_local_size(0)) {
    c[i] = (a[i] + b[i]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
