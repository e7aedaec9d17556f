/* benchmarks/kernels/row_mean: rows of halves by turns, summed in float. */
#include "tecs.h"

struct job {
  const _Float16 *x;
  float *y;
  int rows, cols;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  ptrdiff_t cols = job->cols;
  for (ptrdiff_t r = tec->id; r < job->rows; r += TECS) {
    const _Float16 *x = job->x + r * cols;
    float8 low = 0, high = 0;
    for (ptrdiff_t i = 0; i < cols; i += 16) {
      low += __builtin_convertvector(LOAD(half8, x + i), float8);
      high += __builtin_convertvector(LOAD(half8, x + i + 8), float8);
    }
    float8 s = low + high;
    job->y[r] = (((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))) / (float)cols;
  }
}

int64_t row_mean(const _Float16 *x, float *y, int rows, int cols) { return run(&(struct job){x, y, rows, cols}); }
