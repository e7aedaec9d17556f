/* The loop of examples/dynamic_add as one writes it in C with vector types; n is a multiple of 64. */
#include "tecs.h"

typedef _Float16 half16 __attribute__((ext_vector_type(16), aligned(2)));
struct job {
  const _Float16 *a, *b;
  _Float16 *c;
  int n;
};

static void *work(void *argument) {
  const struct tec *tec = argument;
  const struct job *job = tec->job;
  int share = job->n / TECS, first = tec->id * share;
  for (int i = first; i < first + share; i += 16)
    *(half16 *)(job->c + i) = *(const half16 *)(job->a + i) + *(const half16 *)(job->b + i);
  return NULL;
}

int64_t dynamic_add(const _Float16 *a, const _Float16 *b, _Float16 *c, int n) {
  struct job job = {a, b, c, n};
  return run(work, &job);
}
