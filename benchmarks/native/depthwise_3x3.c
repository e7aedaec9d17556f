/* benchmarks/kernels/depthwise_3x3: rows of the image by turns; the input has a border of one pixel. */
#include "tecs.h"

struct job {
  const float *x, *w;
  float *y;
  int height, width, channels;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  ptrdiff_t channels = job->channels, line = (job->width + 2) * channels;
  for (ptrdiff_t r = tec->id; r < job->height; r += TECS)
    for (ptrdiff_t k = 0; k < channels; k += 8) {
      float8 w[9];
      for (int i = 0; i < 9; i++) w[i] = LOAD(float8, job->w + i * channels + k);
      for (ptrdiff_t c = 0; c < job->width; c++) {
        const float *x = job->x + r * line + c * channels + k;
        float8 sum = 0;
        for (int i = 0; i < 3; i++)
          for (int j = 0; j < 3; j++)
            sum = __builtin_elementwise_fma(LOAD(float8, x + i * line + j * channels), w[3 * i + j], sum);
        STORE(job->y + (r * job->width + c) * channels + k, sum);
      }
    }
}

int64_t depthwise_3x3(const float *x, const float *w, float *y, int height, int width, int channels) {
  return run(&(struct job){x, w, y, height, width, channels});
}
