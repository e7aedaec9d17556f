/* In float, as not every host has the extension for halves: up to one rounding less. */
__kernel void saxpy_fp16(__global const half *x, __global const half *y, __global half *z, float alpha, int n) {
  size_t i = get_global_id(0);
  vstore_half(alpha * vload_half(i, x) + vload_half(i, y), i, z);
}
