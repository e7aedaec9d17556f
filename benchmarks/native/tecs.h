/* Four threads, as many as the simulator runs for the four TECs, and the time they take together. */
#include <stddef.h>
#include <stdint.h>

#define TECS 4

typedef unsigned long pthread_t;
struct timespec {
  int64_t seconds, nanoseconds;
};
int pthread_create(pthread_t *, const void *attributes, void *(*)(void *), void *);
int pthread_join(pthread_t, void **);
int clock_gettime(int, struct timespec *);

struct tec {
  int id;
  const void *job;
};

static inline int64_t now(void) {
  struct timespec t;
  clock_gettime(1, &t);
  return t.seconds * 1000000000 + t.nanoseconds;
}

static inline int64_t run(void *(*work)(void *), const void *job) {
  int64_t start = now();
  pthread_t threads[TECS];
  struct tec tecs[TECS];
  for (int i = 0; i < TECS; i++) {
    tecs[i] = (struct tec){i, job};
    if (pthread_create(&threads[i], NULL, work, &tecs[i]) != 0) return -1;
  }
  for (int i = 0; i < TECS; i++) pthread_join(threads[i], NULL);
  return now() - start;
}
