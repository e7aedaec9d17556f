/* benchmarks/kernels/matmul_fp32: 32 neighbours of a row of the result at a time, in registers. */
#include "tecs.h"

struct job {
  const float *a, *b;
  float *c;
  int n;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  ptrdiff_t n = job->n;
  for (ptrdiff_t i = tec->id; i < n; i += TECS)
    for (ptrdiff_t j = 0; j < n; j += 32) {
      float8 sum[4] = {0};
      for (ptrdiff_t k = 0; k < n; k++)
        for (int v = 0; v < 4; v++)
          sum[v] = __builtin_elementwise_fma((float8)job->a[i * n + k], LOAD(float8, job->b + k * n + j + 8 * v), sum[v]);
      for (int v = 0; v < 4; v++) STORE(job->c + i * n + j + 8 * v, sum[v]);
    }
}

int64_t matmul_fp32(const float *a, const float *b, float *c, int n) { return run(&(struct job){a, b, c, n}); }
