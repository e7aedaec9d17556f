/* examples/bitonic_sort: n is a power of two, at least 8 and at most 32768. */
#include "tecs.h"

struct job {
  const int32_t *src;
  int32_t *dst;
  int n;
};
static int32_t data[32768];

static void exchange_far(const struct tec *tec, ptrdiff_t size, ptrdiff_t length, ptrdiff_t distance) {
  for (ptrdiff_t i = tec->id * 8; i < size / 2; i += TECS * 8) {
    ptrdiff_t at = (i & -distance) + i;
    int32_t *low = data + at, *high = low + distance;
    int8 x = LOAD(int8, low), y = LOAD(int8, high);
    int8 least = __builtin_elementwise_min(x, y), most = __builtin_elementwise_max(x, y);
    int down = (at & length) != 0;
    STORE(low, down ? most : least);
    STORE(high, down ? least : most);
  }
}

#define EXCHANGE_NEAR(distance, ...)                                                           \
  static void exchange_##distance(const struct tec *tec, ptrdiff_t size, ptrdiff_t length) {   \
    const int8 lanes = {0, 1, 2, 3, 4, 5, 6, 7};                                               \
    for (ptrdiff_t i = tec->id * 8; i < size; i += TECS * 8) {                                 \
      int8 x = LOAD(int8, data + i), y = __builtin_shufflevector(x, x, __VA_ARGS__);           \
      int8 number = lanes + (int32_t)i;                                                        \
      int8 smaller = ((number & distance) == 0) ^ ((number & (int32_t)length) != 0);           \
      STORE(data + i, smaller ? __builtin_elementwise_min(x, y) : __builtin_elementwise_max(x, y)); \
    }                                                                                          \
  }
EXCHANGE_NEAR(4, 4, 5, 6, 7, 0, 1, 2, 3)
EXCHANGE_NEAR(2, 2, 3, 0, 1, 6, 7, 4, 5)
EXCHANGE_NEAR(1, 1, 0, 3, 2, 5, 4, 7, 6)

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  ptrdiff_t n = job->n;
  if (tec->id == 0) __builtin_memcpy(data, job->src, n * sizeof *data);
  barrier();
  for (ptrdiff_t length = 2; length <= n; length *= 2)
    for (ptrdiff_t distance = length / 2; distance; distance /= 2) {
      if (distance >= 8) exchange_far(tec, n, length, distance);
      if (distance == 4) exchange_4(tec, n, length);
      if (distance == 2) exchange_2(tec, n, length);
      if (distance == 1) exchange_1(tec, n, length);
      barrier();
    }
  if (tec->id == 0) __builtin_memcpy(job->dst, data, n * sizeof *data);
}

int64_t bitonic_sort(const int32_t *src, int32_t *dst, int n) { return run(&(struct job){src, dst, n}); }
