/* benchmarks/kernels/add_i32 */
#include "tecs.h"

struct job {
  const int32_t *a, *b;
  int32_t *c;
  int n;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  struct range r = share(tec, job->n, 8);
  for (ptrdiff_t i = r.low; i < r.high; i += 8) STORE(job->c + i, LOAD(int8, job->a + i) + LOAD(int8, job->b + i));
}

int64_t add_i32(const int32_t *a, const int32_t *b, int32_t *c, int n) { return run(&(struct job){a, b, c, n}); }
