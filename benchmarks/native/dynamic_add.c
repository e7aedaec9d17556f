/* examples/dynamic_add without its tiles; n is a multiple of 16. */
#include "tecs.h"

struct job {
  const _Float16 *a, *b;
  _Float16 *c;
  int n;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  struct range r = share(tec, job->n, 16);
  for (ptrdiff_t i = r.low; i < r.high; i += 16) STORE(job->c + i, LOAD(half16, job->a + i) + LOAD(half16, job->b + i));
}

int64_t dynamic_add(const _Float16 *a, const _Float16 *b, _Float16 *c, int n) {
  return run(&(struct job){a, b, c, n});
}
