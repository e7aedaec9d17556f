/* examples/scalar_add: one element at a time, threads by turns. */
#include "tecs.h"

struct job {
  const int32_t *a, *b;
  int32_t *c;
  int n;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  for (ptrdiff_t i = tec->id; i < job->n; i += TECS) job->c[i] = job->a[i] + job->b[i];
}

int64_t scalar_add(const int32_t *a, const int32_t *b, int32_t *c, int n) { return run(&(struct job){a, b, c, n}); }
