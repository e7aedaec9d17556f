/* benchmarks/kernels/blend_fp32 */
#include "tecs.h"

struct job {
  const float *a, *b, *t;
  float *y;
  int n;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  struct range r = share(tec, job->n, 8);
  for (ptrdiff_t i = r.low; i < r.high; i += 8) {
    float8 a = LOAD(float8, job->a + i);
    STORE(job->y + i, __builtin_elementwise_fma(LOAD(float8, job->t + i), LOAD(float8, job->b + i) - a, a));
  }
}

int64_t blend_fp32(const float *a, const float *b, const float *t, float *y, int n) {
  return run(&(struct job){a, b, t, y, n});
}
