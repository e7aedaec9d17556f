__kernel void requant_i8(__global const int *x, __global char *y, int n, int shift, int zero) {
  size_t i = get_global_id(0);
  int odd = (x[i] >> shift) & 1;
  y[i] = convert_char_sat(((x[i] + (1 << (shift - 1)) - 1 + odd) >> shift) + zero);
}
