/* Four threads, as many as the simulator has for the four TECs and like those kept between runs, and the time of a run.
 * As there, the caller works too, only as many threads are woken as the host has processors, they are kept off the
 * caller's where they need not wait for each other, and they begin with the last part of the work. A program defines
 * `void work(const struct tec *)`, what each thread does, and a function with the loop's parameters that calls `run(&job)`
 * and returns the nanoseconds.
 */
#include <stddef.h>
#include <stdint.h>

#define TECS 4

typedef unsigned long pthread_t;
struct timespec {
  int64_t seconds, nanoseconds;
};
int pthread_create(pthread_t *, const void *attributes, void *(*)(void *), void *);
int clock_gettime(int, struct timespec *);
int sched_getaffinity(int, size_t, void *);
int sched_setaffinity(int, size_t, const void *);
int sched_getcpu(void);
int gettid(void);
long syscall(long, ...);

struct tec {
  int id;
  const void *job;
};
static void work(const struct tec *tec);

/* Waiting for a word to change, as the C library's own condition variables do it. */
static inline void word_wait(_Atomic uint32_t *word, uint32_t value) { syscall(202, word, 128, value, NULL); }
static inline void word_wake(_Atomic uint32_t *word, int count) { syscall(202, word, 129, count); }

static struct tec tecs[TECS];
static int thread_ids[TECS];
static uint64_t processors[16];
static _Atomic uint32_t ready;
static _Atomic uint32_t left = 0; /* parts of the work that nobody has taken: from `left & 255` to before `left >> 8` */
static _Atomic uint32_t unfinished, arrived, phase, waits;

/* Does the next part of the work that nobody has taken, the first or the last; false when there is none. */
static inline int work_on(int first) {
  uint32_t seen = left, low = seen & 255, high = seen >> 8;
  if (low == high) return 0;
  uint32_t after = first ? seen + 1 : seen - 256;
  if (!__atomic_compare_exchange_n((uint32_t *)&left, &seen, after, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return 1;
  work(&tecs[first ? low : high - 1]);
  if (--unfinished == 0) word_wake(&unfinished, 1);
  return 1;
}

static inline void *serve(void *argument) {
  thread_ids[((struct tec *)argument)->id] = gettid();
  ready++;
  for (;;) {
    uint32_t seen = left;
    if (!work_on(0)) word_wait(&left, seen);
  }
  return NULL;
}

static inline void send_threads(const uint64_t *where) {
  for (int i = 0; i < TECS; i++) sched_setaffinity(thread_ids[i], sizeof processors, where);
}

/* Until all parts of the work are here. */
static inline void barrier(void) {
  uint32_t seen = phase;
  if (++arrived == TECS) {
    arrived = 0;
    phase++;
    word_wake(&phase, TECS);
  } else {
    if ((left & 255) != left >> 8) word_wake(&left, 1);
    for (int i = 0; i < 30 && phase == seen; i++) __builtin_ia32_pause();
    if (phase == seen && !waits++) send_threads(processors);
    while (phase == seen) word_wait(&phase, seen);
  }
}

static inline int64_t now(void) {
  struct timespec t;
  clock_gettime(1, &t);
  return t.seconds * 1000000000 + t.nanoseconds;
}

static inline int start_threads(const void *job) {
  static pthread_t threads[TECS];
  for (int i = 0; i < TECS; i++) tecs[i] = (struct tec){i, job};
  if (threads[0]) return 1;
  sched_getaffinity(0, sizeof processors, processors);
  for (int i = 0; i < TECS; i++)
    if (pthread_create(&threads[i], NULL, serve, &tecs[i]) != 0) return 0;
  while (ready != TECS) {}
  return 1;
}

static inline void keep_threads_away(void) {
  static int taken = -1;
  int own = sched_getcpu();
  if (own == taken) return;
  taken = own;
  uint64_t others[16];
  for (int i = 0; i < 16; i++) others[i] = processors[i] & ~(i == own / 64 ? 1ull << own % 64 : 0);
  send_threads(others);
}

static inline int64_t run(const void *job) {
  if (!start_threads(job)) return -1;
  int count = 0;
  for (int i = 0; i < 16; i++) count += __builtin_popcountll(processors[i]);
  int64_t start = now();
  unfinished = TECS;
  left = TECS << 8;
  if (count > 1) {
    if (!waits) keep_threads_away();
    word_wake(&left, (count < TECS ? count : TECS) - 1);
  }
  while (work_on(1)) {}
  for (int i = 0; i < 500 && unfinished; i++) __builtin_ia32_pause();
  for (uint32_t seen; (seen = unfinished) != 0;) word_wait(&unfinished, seen);
  return now() - start;
}

/* The part of 0..n of a thread, in whole multiples of `step`. */
struct range {
  ptrdiff_t low, high;
};
static inline struct range share(const struct tec *tec, ptrdiff_t n, ptrdiff_t step) {
  ptrdiff_t part = (n / step + TECS - 1) / TECS * step, low = tec->id * part, high = low + part;
  return (struct range){low < n ? low : n, high < n ? high : n};
}

/* Vectors of 32 bytes, as the NPU has them, at any address. */
#define VECTOR(T, N, A) T __attribute__((ext_vector_type(N), aligned(A)))
typedef VECTOR(float, 8, 4) float8;
typedef VECTOR(int32_t, 8, 4) int8;
typedef VECTOR(_Float16, 16, 2) half16;
typedef VECTOR(_Float16, 8, 2) half8;
typedef VECTOR(int8_t, 32, 1) byte32;
#define LOAD(V, p) (*(const V *)(p))
#define STORE(p, v) (*(__typeof__(v) *)(p) = (v))
