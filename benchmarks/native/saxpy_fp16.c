/* benchmarks/kernels/saxpy_fp16 */
#include "tecs.h"

struct job {
  const _Float16 *x, *y;
  _Float16 *z;
  float alpha;
  int n;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  struct range r = share(tec, job->n, 16);
  half16 alpha = (_Float16)job->alpha;
  for (ptrdiff_t i = r.low; i < r.high; i += 16)
    STORE(job->z + i, alpha * LOAD(half16, job->x + i) + LOAD(half16, job->y + i));
}

int64_t saxpy_fp16(const _Float16 *x, const _Float16 *y, _Float16 *z, float alpha, int n) {
  return run(&(struct job){x, y, z, alpha, n});
}
