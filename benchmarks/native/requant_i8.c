/* benchmarks/kernels/requant_i8: sums below 2^30, so that nothing overflows. */
#include "tecs.h"

struct job {
  const int32_t *x;
  int8_t *y;
  int n, shift, zero;
};

static void work(const struct tec *tec) {
  typedef VECTOR(int32_t, 32, 4) int32;
  const struct job *job = tec->job;
  struct range r = share(tec, job->n, 32);
  int32_t half = 1 << (job->shift - 1);
  for (ptrdiff_t i = r.low; i < r.high; i += 32) {
    int32 x = LOAD(int32, job->x + i);
    int32 odd = (x >> job->shift) & 1; /* a half goes to the even neighbour */
    int32 value = ((x + (half - 1) + odd) >> job->shift) + job->zero;
    value = __builtin_elementwise_min(__builtin_elementwise_max(value, (int32)-128), (int32)127);
    STORE(job->y + i, __builtin_convertvector(value, byte32));
  }
}

int64_t requant_i8(const int32_t *x, int8_t *y, int n, int shift, int zero) {
  return run(&(struct job){x, y, n, shift, zero});
}
