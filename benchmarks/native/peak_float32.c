/* Products of floats in registers, as many as the threads can do: `rounds` of CHAINS vectors of 8, which do not wait for
 * each other. */
#include "tecs.h"

enum { CHAINS = 12 };
struct job {
  float *sums;
  int rounds;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  float *sums = job->sums + tec->id * CHAINS * 8;
  float8 a[CHAINS], x = LOAD(float8, sums), y = LOAD(float8, sums + 8);
  for (int i = 0; i < CHAINS; i++) a[i] = LOAD(float8, sums + 8 * i);
  for (int n = 0; n < job->rounds; n++) {
    for (int i = 0; i < CHAINS; i++) a[i] = __builtin_elementwise_fma(x, y, a[i]);
    __asm__ volatile("" : "+x"(x));
  }
  for (int i = 0; i < CHAINS; i++) STORE(sums + 8 * i, a[i]);
}

int64_t peak_float32(float *sums, int rounds) { return run(&(struct job){sums, rounds}); }
