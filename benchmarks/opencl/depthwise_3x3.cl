__kernel void depthwise_3x3(__global const float *x, __global const float *w, __global float *y, int height, int width,
                            int channels) {
  size_t k = get_global_id(0), c = get_global_id(1), r = get_global_id(2), line = (width + 2) * channels;
  float sum = 0;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      sum = fma(x[(r + i) * line + (c + j) * channels + k], w[(3 * i + j) * channels + k], sum);
  y[(r * width + c) * channels + k] = sum;
}
