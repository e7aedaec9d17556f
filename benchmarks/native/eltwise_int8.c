/* The loop of examples/eltwise_int8 as one writes it in C with vector types; n is a multiple of 128. */
#include "tecs.h"

#define LANES 32 /* 16 and 64 are as fast where this was written, 8 is slower */

typedef int8_t narrow __attribute__((ext_vector_type(LANES), aligned(1)));
typedef int32_t wide __attribute__((ext_vector_type(LANES)));
struct job {
  const int8_t *a, *b;
  int8_t *out;
  int n, za, sa, zb, sb, shift, zo;
};

static inline wide widen(const int8_t *p) { return __builtin_convertvector(*(const narrow *)p, wide); }
static inline wide pick(wide condition, wide yes, wide no) { return (condition & yes) | (~condition & no); }

static void work(const struct tec *tec) {
  const struct job job = *(const struct job *)tec->job;
  ptrdiff_t share = job.n / TECS, first = tec->id * share;
  const int8_t *restrict a = job.a + first, *restrict b = job.b + first;
  int8_t *restrict out = job.out + first;
  int32_t below_half = (1 << (job.shift - 1)) - 1;
  for (ptrdiff_t i = 0; i < share; i += LANES) {
    wide sum = (widen(a + i) - job.za) * job.sa + (widen(b + i) - job.zb) * job.sb;
    wide whole = sum >> job.shift, half = (sum >> (job.shift - 1)) & 1;
    wide up = half & (((sum & below_half) != 0) | whole); /* a half goes to the even neighbour; no sum overflows */
    wide result = whole + up + job.zo;
    result = pick(result > 127, (wide)127, pick(result < -128, (wide)-128, result));
    *(narrow *)(out + i) = __builtin_convertvector(result, narrow);
  }
}

int64_t eltwise_int8(const int8_t *a, const int8_t *b, int8_t *out, int n, int za, int sa, int zb, int sb, int shift,
                     int zo) {
  struct job job = {a, b, out, n, za, sa, zb, sb, shift, zo};
  return run(&job);
}
