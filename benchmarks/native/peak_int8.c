/* The same for products of bytes, four to a sum of 32 bits: by the host's instruction for them, or by its exact products
 * of pairs. */
#include "tecs.h"

enum { CHAINS = 8 };
typedef VECTOR(int16_t, 16, 2) pairs16;
struct job {
  int32_t *sums;
  int rounds;
};

static inline int8 products(int8 sum, int8 x, int8 y) {
#if defined(__AVXVNNI__) || (defined(__AVX512VNNI__) && defined(__AVX512VL__))
  typedef int plain __attribute__((vector_size(32)));
  typedef signed char bytes __attribute__((vector_size(32)));
  return (int8)__builtin_ia32_vpdpbusd256((plain)sum, (bytes)x, (bytes)y);
#elif defined(__AVX2__)
  typedef short plain __attribute__((vector_size(32)));
  return sum + (int8)__builtin_ia32_pmaddwd256((plain)x, (plain)y) + (int8)__builtin_ia32_pmaddwd256((plain)y, (plain)y);
#else
  pairs16 low = (pairs16)x * (pairs16)y, high = (pairs16)y * (pairs16)y;
  return sum + (int8)low + (int8)high;
#endif
}

static void work(const struct tec *tec) {
  const struct job *job = tec->job;
  int32_t *sums = job->sums + tec->id * CHAINS * 8;
  int8 a[CHAINS], x = LOAD(int8, sums), y = LOAD(int8, sums + 8);
  for (int i = 0; i < CHAINS; i++) a[i] = LOAD(int8, sums + 8 * i);
  for (int n = 0; n < job->rounds; n++)
    for (int i = 0; i < CHAINS; i++) {
      __asm__ volatile("" : "+x"(y));
      a[i] = products(a[i], x, y);
    }
  for (int i = 0; i < CHAINS; i++) STORE(sums + 8 * i, a[i]);
}

int64_t peak_int8(int32_t *sums, int rounds) { return run(&(struct job){sums, rounds}); }
