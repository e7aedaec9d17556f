/* An element of the result per work item. */
__kernel void matmul_int8(__global const char *x, __global const char *w, __global int *y, int rows, int cols,
                          int depth) {
  size_t j = get_global_id(0), i = get_global_id(1);
  int sum = 0;
  for (int k = 0; k < depth; k++) sum += x[i * depth + k] * w[j * depth + k];
  y[i * cols + j] = sum;
}
