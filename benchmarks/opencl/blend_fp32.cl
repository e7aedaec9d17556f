__kernel void blend_fp32(__global const float *a, __global const float *b, __global const float *t, __global float *y,
                         int n) {
  size_t i = get_global_id(0);
  y[i] = fma(t[i], b[i] - a[i], a[i]);
}
