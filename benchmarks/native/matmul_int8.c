/* examples/matmul_int8: a dot product per element of the result. The inner loop is a form that clang turns into
 * products of pairs (vpmaddwd and the like), unrolled; widening by hand was slower. */
#include "tecs.h"

struct job {
  const int8_t *x, *w;
  int32_t *y;
  int rows, cols, depth;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  ptrdiff_t depth = job->depth;
  for (ptrdiff_t i = tec->id; i < job->rows; i += TECS)
    for (ptrdiff_t j = 0; j < job->cols; j++) {
      const int8_t *a = job->x + i * depth, *b = job->w + j * depth;
      int32_t sum = 0;
      for (ptrdiff_t k = 0; k < depth; k++) sum += a[k] * b[k];
      job->y[i * job->cols + j] = sum;
    }
}

int64_t matmul_int8(const int8_t *x, const int8_t *w, int32_t *y, int rows, int cols, int depth) {
  return run(&(struct job){x, w, y, rows, cols, depth});
}
