#include "barrier.h"

#include "check.h"
#include "debug.h"
#include "events.h"
#include "record.h"
#include "schedule.h"
#include "watch.h"

/* `meeting` of a core counts TECs: those that arrived in this phase, those of them that went on to their end without
 * waiting, and those that ended in an earlier phase. One word, so that all change in one step. */
#define ARRIVED(m) ((m) & 0x3ffu)
#define LEAVING(m) ((m) >> 10 & 0x3ffu)
#define ENDED(m) ((m) >> 20)
#define ONE_ARRIVED 1u
#define ONE_LEAVING 0x400u
#define ONE_ENDED 0x100000u

void barrier_reset(struct core *core, uint32_t count) {
  core->party = count;
  atomic_store(&core->meeting, 0);
}

/* Everyone waits or has ended, and someone waits: nobody will come. */
static void check_deadlock(const struct core *core, uint32_t m) {
  if (ARRIVED(m) && ENDED(m) && ARRIVED(m) + ENDED(m) == core->party) declare_deadlock();
}

void barrier_leave(struct tec *tec) {
  if (!tec->left_at_barrier) check_deadlock(tec->core, atomic_fetch_add(&tec->core->meeting, ONE_ENDED) + ONE_ENDED);
}

bool barrier_keeps(struct tec *tec) { return tec->left_at_barrier && atomic_load(&tec->core->phase) == tec->left_phase; }

/* All have arrived; `m` is the count. */
static void open_barrier(struct core *core, uint32_t m) {
  atomic_store(&core->meeting, LEAVING(m) * ONE_ENDED);
  enter_next_phase(core);
  if (check_on) check_new_phase();
  if (schedule_on) schedule_release();
}

static void wait_at_barrier(struct tec *tec, uint32_t phase) {
  if (schedule_on)
    schedule_block();
  else if (looked_at())
    wait_for_phase(tec->core, phase);
  else
    pause_task(tec, phase);
}

void __compass_barrier(void) {
  struct tec *tec = current_tec();
  struct core *core = tec->core;
  schedule_point();
  record(RECORD_BARRIER, 0);
  if (check_on) check_barrier(tec);
  finish_events(tec, ALL_EVENTS);
  uint32_t seen = atomic_load(&core->phase);
  atomic_store_explicit(&tec->state, TEC_AT_BARRIER, memory_order_relaxed);
  uint32_t m = atomic_fetch_add(&core->meeting, ONE_ARRIVED) + ONE_ARRIVED;
  if (ARRIVED(m) == core->party) {
    open_barrier(core, m);
  } else {
    check_deadlock(core, m);
    wait_at_barrier(tec, seen);
  }
  atomic_store_explicit(&tec->state, TEC_RUNNING, memory_order_relaxed);
}

void __compass_last_barrier(void) {
  if (schedule_on || recording || debugged) { /* somebody looks who waits for whom */
    __compass_barrier();
    return;
  }
  struct tec *tec = current_tec();
  struct core *core = tec->core;
  finish_events(tec, ALL_EVENTS);
  tec->left_phase = atomic_load(&core->phase);
  tec->left_at_barrier = true;
  uint32_t m = atomic_fetch_add(&core->meeting, ONE_ARRIVED + ONE_LEAVING) + ONE_ARRIVED + ONE_LEAVING;
  if (ARRIVED(m) == core->party)
    open_barrier(core, m);
  else
    check_deadlock(core, m);
}
