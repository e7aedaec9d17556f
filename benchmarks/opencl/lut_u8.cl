__kernel void lut_u8(__global const uchar *x, __global const uchar *table, __global uchar *y, int n) {
  size_t i = get_global_id(0);
  y[i] = table[x[i]];
}
