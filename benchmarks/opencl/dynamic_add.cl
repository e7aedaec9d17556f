__kernel void dynamic_add(__global const half *a, __global const half *b, __global half *c, int n) {
  size_t i = get_global_id(0);
  vstore_half(vload_half(i, a) + vload_half(i, b), i, c);
}
