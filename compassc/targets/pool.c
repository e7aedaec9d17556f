/* Threads for parallel loops: each library has this; a process uses that of the first one it loads.
 *
 * A job is open while turns of it may be taken. Threads join an open job and take pieces of it; whoever opened it takes
 * pieces, too, closes it when there are no more, and waits for those that joined. A loop that starts while another one
 * runs has all of its turns in its own thread.
 */
typedef int (*compass_body)(void *captured, long begin, long end);
typedef unsigned long pthread_t;

int pthread_create(pthread_t *thread, const void *attributes, void *(*start)(void *), void *argument);
int pthread_detach(pthread_t thread);
int getpid(void);
int sched_yield(void);
long syscall(long number, ...);

#define PUBLIC __attribute__((visibility("default")))
#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define STORE(x, value) __atomic_store_n(&(x), value, __ATOMIC_SEQ_CST)
#define ADD(x, value) __atomic_fetch_add(&(x), value, __ATOMIC_SEQ_CST)
#define MOST 256 /* threads */
#define PIECES 4 /* of a job for each thread */
#define SPINS 2000

enum { FUTEX = 202, WAIT_PRIVATE = 128, WAKE_PRIVATE = 129, OPEN = 1 << 30 };

PUBLIC int compass_host_threads = 1; /* how many work on a job, with the one that opened it */

static int busy, process, workers;
static unsigned jobs; /* the number of the newest job */
static int state;     /* OPEN, and how many joined */
static struct {
  compass_body body;
  void *captured;
  long turns, piece, next;
  int limit, failed;
} job;

static void pause_a_moment(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void wait_while(unsigned *word, unsigned value) {
  for (int i = 0; i < SPINS; i++) {
    if (LOAD(*word) != value) return;
    pause_a_moment();
  }
  while (LOAD(*word) == value) syscall(FUTEX, word, WAIT_PRIVATE, value, (void *)0, (void *)0, 0);
}

static void wake(unsigned *word) { syscall(FUTEX, word, WAKE_PRIVATE, 1 << 30, (void *)0, (void *)0, 0); }

static void take_pieces(void) {
  for (;;) {
    long begin = ADD(job.next, job.piece);
    if (begin >= job.turns) return;
    long end = begin + job.piece < job.turns ? begin + job.piece : job.turns;
    if (job.body(job.captured, begin, end)) STORE(job.failed, 1);
  }
}

static int join(int number) {
  for (;;) {
    int now = LOAD(state);
    if (!(now & OPEN) || number >= job.limit) return 0;
    if (__atomic_compare_exchange_n(&state, &now, now + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return 1;
  }
}

static void *work(void *argument) {
  unsigned seen = 0;
  for (;;) {
    wait_while(&jobs, seen);
    seen = LOAD(jobs);
    if (!join((int)(long)argument)) continue;
    take_pieces();
    if (ADD(state, -1) == 1) wake((unsigned *)&state);
  }
  return (void *)0;
}

static void start_workers(int wanted) {
  if (process != getpid()) { /* threads do not come along when a process forks */
    process = getpid();
    workers = 0;
    jobs = 0;
    state = 0;
  }
  while (workers < wanted && workers < MOST) {
    pthread_t made;
    if (pthread_create(&made, (void *)0, work, (void *)(long)(workers + 1))) return;
    pthread_detach(made);
    workers++;
  }
}

PUBLIC int compass_host_parallel(compass_body body, void *captured, long turns) {
  int threads = LOAD(compass_host_threads);
  if (turns < threads) threads = (int)turns;
  int forked = process && process != getpid();
  if (threads < 2 || (__atomic_exchange_n(&busy, 1, __ATOMIC_SEQ_CST) && !forked)) return body(captured, 0, turns);
  start_workers(threads - 1);
  job.body = body, job.captured = captured, job.turns = turns, job.limit = threads, job.failed = 0;
  job.piece = turns / (threads * PIECES) ? turns / (threads * PIECES) : 1;
  STORE(job.next, 0);
  STORE(state, OPEN);
  ADD(jobs, 1);
  wake(&jobs);
  take_pieces();
  for (int now = ADD(state, -OPEN) - OPEN; now; now = LOAD(state)) wait_while((unsigned *)&state, (unsigned)now);
  int failed = job.failed;
  STORE(busy, 0);
  return failed;
}
