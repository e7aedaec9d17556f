/* examples/max_reduce: vectors by turns, then lanes, then threads; n is a multiple of 8. */
#include "tecs.h"

struct job {
  const int32_t *x;
  int32_t *out, *partial;
  int n;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  int8 best = INT32_MIN;
  for (ptrdiff_t i = tec->id * 8; i < job->n; i += TECS * 8)
    best = __builtin_elementwise_max(best, LOAD(int8, job->x + i));
  job->partial[tec->id] = __builtin_reduce_max(best);
  barrier();
  if (tec->id) return;
  int32_t result = job->partial[0];
  for (int t = 1; t < TECS; t++) result = job->partial[t] > result ? job->partial[t] : result;
  *job->out = result;
}

int64_t max_reduce(const int32_t *x, int32_t *out, int n) {
  int32_t partial[TECS];
  return run(&(struct job){x, out, partial, n});
}
