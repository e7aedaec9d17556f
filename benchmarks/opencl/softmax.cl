/* A row per work item. */
__kernel void softmax(__global const half *src, __global half *dst, int rows, int cols) {
  size_t at = get_global_id(0) * cols;
  float e[4096];
  float top = vload_half(at, src);
  for (int i = 1; i < cols; i++) top = max(top, vload_half(at + i, src));
  float total = 0;
  for (int i = 0; i < cols; i++) {
    e[i] = exp(vload_half(at + i, src) - top);
    total += e[i];
  }
  float scale = 1.0f / total;
  for (int i = 0; i < cols; i++) vstore_half(e[i] * scale, at + i, dst);
}
