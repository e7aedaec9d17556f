/* benchmarks/kernels/layer_norm: rows by turns. */
#include "tecs.h"

struct job {
  const float *x, *w, *b;
  float *y;
  int rows, cols;
};

static inline float sum(float8 x) { return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])); }

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  ptrdiff_t cols = job->cols;
  for (ptrdiff_t r = tec->id; r < job->rows; r += TECS) {
    const float *x = job->x + r * cols;
    float *y = job->y + r * cols;
    float8 total = 0, squares = 0;
    for (ptrdiff_t i = 0; i < cols; i += 8) total += LOAD(float8, x + i);
    float mean = sum(total) / (float)cols;
    for (ptrdiff_t i = 0; i < cols; i += 8) {
      float8 d = LOAD(float8, x + i) - mean;
      squares = __builtin_elementwise_fma(d, d, squares);
    }
    float scale = 1.0f / __builtin_sqrtf(sum(squares) / (float)cols + 1e-5f);
    for (ptrdiff_t i = 0; i < cols; i += 8)
      STORE(y + i, __builtin_elementwise_fma((LOAD(float8, x + i) - mean) * scale, LOAD(float8, job->w + i),
                                             LOAD(float8, job->b + i)));
  }
}

int64_t layer_norm(const float *x, const float *w, const float *b, float *y, int rows, int cols) {
  return run(&(struct job){x, w, b, y, rows, cols});
}
