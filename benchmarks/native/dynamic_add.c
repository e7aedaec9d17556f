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
  ptrdiff_t share = job->n / TECS, first = tec->id * share;
  const _Float16 *restrict a = job->a + first, *restrict b = job->b + first;
  _Float16 *restrict c = job->c + first;
  for (ptrdiff_t i = 0; i < share; i += 16) *(half16 *)(c + i) = *(const half16 *)(a + i) + *(const half16 *)(b + i);
  return NULL;
}

int64_t dynamic_add(const _Float16 *a, const _Float16 *b, _Float16 *c, int n) {
  struct job job = {a, b, c, n};
  return run(work, &job);
}
