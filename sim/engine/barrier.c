#include "barrier.h"

#include "dma.h"
#include "futex.h"
#include "tec.h"

/* Low half: TECs waiting in this phase; high half: TECs that ended. One word, so that both change in one step. */
static _Atomic uint32_t meeting;
static _Atomic uint32_t phase;
static uint32_t party;
#define WAITING(m) ((m) & 0xffffu)
#define ENDED(m) ((m) >> 16)
#define ONE_ENDED 0x10000u
/* How often to look before sleeping. With a processor for every TEC the others arrive within a microsecond or so; with
 * fewer, whoever spins keeps the others from arriving. */
#define SPINS_ALL_RUN 1000
#define SPINS_TURNS 30
static int spins;

static int processors(void) {
  uint64_t allowed[16] = {0};
  int count = 0;
  if (sched_getaffinity(0, sizeof allowed, allowed) != 0) return 1;
  for (int i = 0; i < 16; i++) count += __builtin_popcountll(allowed[i]);
  return count;
}

void barrier_reset(uint32_t tecs) {
  static int available;
  if (!available) available = processors();
  spins = available >= (int)tecs ? SPINS_ALL_RUN : SPINS_TURNS;
  party = tecs;
  atomic_store(&meeting, 0);
}

/* Everyone waits or has ended, and someone waits: nobody will come. */
static void check_deadlock(uint32_t m) {
  if (WAITING(m) && ENDED(m) && WAITING(m) + ENDED(m) == party) declare_deadlock();
}

void barrier_leave(void) { check_deadlock(atomic_fetch_add(&meeting, ONE_ENDED) + ONE_ENDED); }

void __compass_barrier(void) {
  struct tec *tec = current_tec();
  finish_events(tec);
  uint32_t seen = atomic_load(&phase);
  atomic_store_explicit(&tec->state, TEC_AT_BARRIER, memory_order_relaxed);
  uint32_t m = atomic_fetch_add(&meeting, 1) + 1;
  if (m == party) {
    atomic_store(&meeting, 0);
    atomic_fetch_add(&phase, 1);
    futex_wake_all(&phase);
  } else {
    check_deadlock(m);
    for (int i = 0; i < spins && atomic_load_explicit(&phase, memory_order_acquire) == seen; i++)
      __builtin_ia32_pause();
    while (atomic_load(&phase) == seen) futex_wait(&phase, seen, NULL);
  }
  atomic_store_explicit(&tec->state, TEC_RUNNING, memory_order_relaxed);
}
