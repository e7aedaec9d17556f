/* The loop of examples/eltwise_int8 as one writes it in C with vector types; n is a multiple of 128. */
#include "tecs.h"

typedef int8_t char32 __attribute__((ext_vector_type(32), aligned(1)));
typedef int32_t int32x32 __attribute__((ext_vector_type(32)));
struct job {
  const int8_t *a, *b;
  int8_t *out;
  int n, za, sa, zb, sb, shift, zo;
};

static inline int32x32 widen(const int8_t *p) { return __builtin_convertvector(*(const char32 *)p, int32x32); }

static void *work(void *argument) {
  const struct tec *tec = argument;
  const struct job job = *(const struct job *)tec->job;
  ptrdiff_t share = job.n / TECS, first = tec->id * share;
  const int8_t *restrict a = job.a + first, *restrict b = job.b + first;
  int8_t *restrict out = job.out + first;
  int32_t below_half = (1 << (job.shift - 1)) - 1;
  for (ptrdiff_t i = 0; i < share; i += 32) {
    int32x32 sum = (widen(a + i) - job.za) * job.sa + (widen(b + i) - job.zb) * job.sb;
    int32x32 odd = (sum >> job.shift) & 1; /* a half goes to the even neighbour */
    int32x32 result = ((sum + below_half + odd) >> job.shift) + job.zo;
    result = __builtin_elementwise_max(__builtin_elementwise_min(result, (int32x32)127), (int32x32)-128);
    *(char32 *)(out + i) = __builtin_convertvector(result, char32);
  }
  return NULL;
}

int64_t eltwise_int8(const int8_t *a, const int8_t *b, int8_t *out, int n, int za, int sa, int zb, int sb, int shift,
                     int zo) {
  struct job job = {a, b, out, n, za, sa, zb, sb, shift, zo};
  return run(work, &job);
}
