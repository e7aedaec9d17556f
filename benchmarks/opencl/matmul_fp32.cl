/* An element of the result per work item. */
__kernel void matmul_fp32(__global const float *a, __global const float *b, __global float *c, int n) {
  size_t j = get_global_id(0), i = get_global_id(1);
  float sum = 0;
  for (int k = 0; k < n; k++) sum = fma(a[i * n + k], b[k * n + j], sum);
  c[i * n + j] = sum;
}
