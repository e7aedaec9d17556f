/* A row per work item. */
__kernel void row_mean(__global const half *x, __global float *y, int rows, int cols) {
  size_t r = get_global_id(0);
  float sum = 0;
  for (int i = 0; i < cols; i++) sum += vload_half(r * cols + i, x);
  y[r] = sum / cols;
}
