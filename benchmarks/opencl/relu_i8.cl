__kernel void relu_i8(__global const char *x, __global char *y, int n) {
  size_t i = get_global_id(0);
  y[i] = max(x[i], (char)0);
}
