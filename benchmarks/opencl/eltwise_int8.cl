__kernel void eltwise_int8(__global const char *a, __global const char *b, __global char *out, int n, int za, int sa,
                           int zb, int sb, int shift, int zo) {
  size_t i = get_global_id(0);
  int sum = (a[i] - za) * sa + (b[i] - zb) * sb;
  int whole = sum >> shift, half_bit = (sum >> (shift - 1)) & 1;
  int up = half_bit & (((sum & ((1 << (shift - 1)) - 1)) != 0) | whole);
  out[i] = convert_char_sat(whole + up + zo);
}
