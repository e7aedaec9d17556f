__kernel void transpose(__global const float *x, __global float *y, int h, int w) {
  size_t c = get_global_id(0), r = get_global_id(1);
  y[c * h + r] = x[r * w + c];
}
