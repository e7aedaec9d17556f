/* benchmarks/kernels/lut_u8: hosts have no gather of bytes. */
#include "tecs.h"

struct job {
  const uint8_t *x, *table;
  uint8_t *y;
  int n;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  struct range r = share(tec, job->n, 32);
  for (ptrdiff_t i = r.low; i < r.high; i++) job->y[i] = job->table[job->x[i]];
}

int64_t lut_u8(const uint8_t *x, const uint8_t *table, uint8_t *y, int n) {
  return run(&(struct job){x, table, y, n});
}
