/* examples/vadd: all threads add to the same eight elements, as the TECs do. */
#include "tecs.h"

struct job {
  const int32_t *a;
  int32_t *b;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  STORE(job->b, LOAD(int8, job->a) + 1);
}

int64_t vadd(const int32_t *a, int32_t *b) { return run(&(struct job){a, b}); }
