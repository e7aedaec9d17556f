/* examples/silu_lut: interpolation in a table of 513 halves; n is a multiple of 8. */
#include "tecs.h"

struct job {
  const _Float16 *x;
  _Float16 *y;
  int n;
  const _Float16 *table;
};

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  struct range r = share(tec, job->n, 16);
  for (ptrdiff_t i = r.low; i < r.high; i += 8) {
    float8 v = __builtin_convertvector(LOAD(half8, job->x + i), float8);
    float8 above = v < -8.0f ? (float8)-8.0f : v, inside = above > 8.0f ? (float8)8.0f : above;
    float8 position = (inside + 8.0f) * 32.0f;
    int8 step = __builtin_elementwise_min(__builtin_convertvector(position, int8), (int8)511);
    half8 low, high;
#pragma unroll
    for (int k = 0; k < 8; k++) low[k] = job->table[step[k]], high[k] = job->table[step[k] + 1];
    float8 left = __builtin_convertvector(low, float8), right = __builtin_convertvector(high, float8);
    float8 y = left + (position - __builtin_convertvector(step, float8)) * (right - left);
    y = v > 8.0f ? v : (v < -8.0f ? (float8)0.0f : y);
    STORE(job->y + i, __builtin_convertvector(y, half8));
  }
}

int64_t silu_lut(const _Float16 *x, _Float16 *y, int n, const _Float16 *table) {
  return run(&(struct job){x, y, n, table});
}
