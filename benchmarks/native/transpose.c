/* examples/transpose: rows by turns, eight neighbours of a row go to eight rows; w is a multiple of 8. */
#include "tecs.h"

struct job {
  const float *x;
  float *y;
  int h, w;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  ptrdiff_t h = job->h, w = job->w;
  for (ptrdiff_t r = tec->id; r < h; r += TECS)
    for (ptrdiff_t c = 0; c < w; c += 8) {
      float8 v = LOAD(float8, job->x + r * w + c);
#pragma unroll
      for (int i = 0; i < 8; i++) job->y[(c + i) * h + r] = v[i];
    }
}

int64_t transpose(const float *x, float *y, int h, int w) { return run(&(struct job){x, y, h, w}); }
