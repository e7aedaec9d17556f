/* benchmarks/kernels/relu_i8 */
#include "tecs.h"

struct job {
  const int8_t *x;
  int8_t *y;
  int n;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  struct range r = share(tec, job->n, 32);
  for (ptrdiff_t i = r.low; i < r.high; i += 32)
    STORE(job->y + i, __builtin_elementwise_max(LOAD(byte32, job->x + i), (byte32)0));
}

int64_t relu_i8(const int8_t *x, int8_t *y, int n) { return run(&(struct job){x, y, n}); }
