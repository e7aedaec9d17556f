/* The loop of examples/dynamic_add as one writes it in C with vector types: with the kernel's tiles, which are copied to
 * a memory of the thread's own, and without them. n is a multiple of 64. */
#include "tecs.h"

#define TILE 4096

typedef _Float16 half16 __attribute__((ext_vector_type(16), aligned(2)));
struct job {
  const _Float16 *a, *b;
  _Float16 *c;
  int n;
};

static inline void add(_Float16 *c, const _Float16 *a, const _Float16 *b, ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; i += 16) *(half16 *)(c + i) = *(const half16 *)(a + i) + *(const half16 *)(b + i);
}

static void *plain(void *argument) {
  const struct tec *tec = argument;
  const struct job *job = tec->job;
  ptrdiff_t share = job->n / TECS, first = tec->id * share;
  add(job->c + first, job->a + first, job->b + first, share);
  return NULL;
}

static void *tiled(void *argument) {
  const struct tec *tec = argument;
  const struct job *job = tec->job;
  ptrdiff_t share = job->n / TECS, first = tec->id * share;
  _Float16 x[TILE], y[TILE];
  for (ptrdiff_t i = first; i < first + share; i += TILE) {
    ptrdiff_t now = first + share - i < TILE ? first + share - i : TILE;
    __builtin_memcpy(x, job->a + i, now * sizeof *x);
    __builtin_memcpy(y, job->b + i, now * sizeof *y);
    add(x, x, y, now);
    __builtin_memcpy(job->c + i, x, now * sizeof *x);
  }
  return NULL;
}

int64_t dynamic_add(const _Float16 *a, const _Float16 *b, _Float16 *c, int n) {
  struct job job = {a, b, c, n};
  return run(tiled, &job);
}

int64_t dynamic_add_plain(const _Float16 *a, const _Float16 *b, _Float16 *c, int n) {
  struct job job = {a, b, c, n};
  return run(plain, &job);
}
