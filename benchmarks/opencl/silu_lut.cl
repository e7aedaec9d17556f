__kernel void silu_lut(__global const half *x, __global half *y, int n, __global const half *table) {
  size_t i = get_global_id(0);
  float v = vload_half(i, x);
  float position = (clamp(v, -8.0f, 8.0f) + 8.0f) * 32.0f;
  int step = min((int)position, 511);
  float left = vload_half(step, table), right = vload_half(step + 1, table);
  float inside = left + (position - step) * (right - left);
  vstore_half(v > 8.0f ? v : v < -8.0f ? 0.0f : inside, i, y);
}
