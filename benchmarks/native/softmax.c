/* examples/softmax as one writes it in C with vector types, with a buffer for the exponentials of a row; cols is a multiple
 * of 16, at most 4096. */
#include "tecs.h"

struct job {
  const _Float16 *src;
  _Float16 *dst;
  int rows, cols;
};

static inline float8 load(const _Float16 *p) { return __builtin_convertvector(*(const half8 *)p, float8); }

static inline float8 pick(int8 condition, float8 yes, float8 no) {
  return (float8)((condition & (int8)yes) | (~condition & (int8)no));
}

/* The rational approximation the kernel's exp uses, with the same results for all x. */
static inline float8 exponential(float8 x) {
  int8 under = x < -0x1.5d589ep+6f, over = x >= 0x1.62e430p+6f, nan = x != x;
  float8 a = pick(under | over | nan, (float8)0.0f, x);
  float8 p = __builtin_elementwise_trunc(__builtin_elementwise_fma(a, (float8)0x1.715476p+0f, pick(a < 0.0f, (float8)-0.5f, (float8)0.5f)));
  float8 t = __builtin_elementwise_fma(p, (float8)-0x1.62e300p-1f, a) - p * 0x1.2fefa2p-17f;
  float8 s = t * t;
  float8 c = __builtin_elementwise_fma(s, (float8)0x1.637698p-25f, (float8)-0x1.bbd41cp-20f);
  c = __builtin_elementwise_fma(s, c, (float8)0x1.1566aap-14f);
  c = __builtin_elementwise_fma(s, c, (float8)-0x1.6c16c2p-9f);
  c = __builtin_elementwise_fma(s, c, (float8)0x1.555556p-3f);
  float8 v = __builtin_elementwise_fma(s, -c, t);
  float8 power = (float8)((__builtin_convertvector(p, int8) + 127) << 23);
  float8 y = ((1.0f + t) + (t * v) / (2.0f - v)) * power;
  y = pick(under, (float8)0.0f, pick(over, (float8)__builtin_inff(), y));
  return pick(nan, x, y);
}

static inline float sum(float8 x) { return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])); }

static void row(const _Float16 *from, _Float16 *to, int cols) {
  __attribute__((aligned(32))) float e[4096];
  float8 best = load(from);
  for (int i = 8; i < cols; i += 8) {
    float8 x = load(from + i);
    best = pick(x > best, x, best);
  }
  float top = best[0];
  for (int i = 1; i < 8; i++) top = best[i] > top ? best[i] : top;
  float8 even = 0, odd = 0;
  for (int i = 0; i < cols; i += 16) {
    float8 x = exponential(load(from + i) - top), y = exponential(load(from + i + 8) - top);
    *(float8 *)(e + i) = x;
    *(float8 *)(e + i + 8) = y;
    even += x;
    odd += y;
  }
  float scale = 1.0f / (sum(even) + sum(odd));
  for (int i = 0; i < cols; i += 8) STORE(to + i, __builtin_convertvector(*(float8 *)(e + i) * scale, half8));
}

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  for (ptrdiff_t r = tec->id; r < job->rows; r += TECS) row(job->src + r * job->cols, job->dst + r * job->cols, job->cols);
}

int64_t softmax(const _Float16 *src, _Float16 *dst, int rows, int cols) {
  struct job job = {src, dst, rows, cols};
  return run(&job);
}
