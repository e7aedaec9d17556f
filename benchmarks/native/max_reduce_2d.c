/* examples/max_reduce_2d: rows by turns; cols is a multiple of 8. */
#include "tecs.h"

struct job {
  const float *x;
  float *y;
  int rows, cols;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  for (ptrdiff_t r = tec->id; r < job->rows; r += TECS) {
    const float *row = job->x + r * job->cols;
    float8 best = LOAD(float8, row);
    for (ptrdiff_t c = 8; c < job->cols; c += 8) {
      float8 x = LOAD(float8, row + c);
      best = x > best ? x : best;
    }
    job->y[r] = __builtin_reduce_max(best);
  }
}

int64_t max_reduce_2d(const float *x, float *y, int rows, int cols) { return run(&(struct job){x, y, rows, cols}); }
