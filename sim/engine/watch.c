#include "watch.h"

#include "fault.h"
#include "futex.h"
#include "processors.h"
#include "sandbox.h"
#include "tec.h"

#define PR_SET_NAME 15
/* How often to look. A task waits for about that long for a TEC that ends: then it gets a thread, for those that run may
 * wait for it without a barrier. */
#define INTERVAL_NS 5000000u

static _Atomic uint32_t job; /* odd while one runs; grows with each beginning and end */
static _Atomic uint32_t ready, awake, deadlock, alarms;
static _Atomic uint64_t job_start, job_end;
static uint32_t begun; /* what `job` was made by the main thread */

static uint32_t look(uint64_t time) {
  if (atomic_load(&deadlock)) return FAULT_DEADLOCK;
  if (time >= atomic_load(&job_end)) return FAULT_TIMEOUT;
  if (memory_is_exceeded()) return FAULT_MEMORY;
  follow_parent();
  return 0;
}

static void sleep_a_while(void) {
  uint32_t seen = atomic_load(&alarms);
  uint64_t time = now(), end = atomic_load(&job_end), left = end > time ? end - time : 0;
  if (!(atomic_load(&job) & 1) || left > INTERVAL_NS) left = INTERVAL_NS;
  if (!atomic_load(&deadlock)) futex_wait(&alarms, seen, &(struct timespec){0, (int64_t)left});
}

/* Looks until a while passes without a job. */
static void watch_jobs(void) {
  for (uint32_t last = 0, seen = atomic_load(&job); (seen & 1) || seen != last;) {
    last = seen;
    sleep_a_while();
    seen = atomic_load(&job);
    if (!(seen & 1)) continue;
    uint64_t time = now();
    uint32_t fault = look(time), failed = seen;
    if (seen == last) {
      let_helpers_go_anywhere(); /* another process may be busy where they are */
      offer_tasks();
    }
    if (fault && atomic_compare_exchange_strong(&job, &failed, seen + 1))
      report_standstill(fault, time - atomic_load(&job_start));
  }
}

static void *watch(void *argument) {
  (void)argument;
  prctl(PR_SET_NAME, (unsigned long)"watch", 0, 0, 0);
  prepare_thread();
  atomic_store(&ready, 1);
  futex_wake_all(&ready);
  for (;;) {
    while (!atomic_load(&awake)) futex_wait(&awake, 0, NULL);
    watch_jobs();
    atomic_store(&awake, 0);
    if (atomic_load(&job) & 1) atomic_store(&awake, 1); /* it began meanwhile, and woke nobody */
  }
  return NULL;
}

bool watch_start(void) {
  if (!start_thread(watch, NULL)) return false;
  while (!atomic_load(&ready)) futex_wait(&ready, 0, NULL);
  return true;
}

void watch_begin_job(uint64_t time_limit) {
  uint64_t start = now(), end = start + time_limit;
  atomic_store(&job_start, start);
  atomic_store(&job_end, end < start ? UINT64_MAX : end);
  begun = atomic_fetch_add(&job, 1) + 1;
  if (!atomic_exchange(&awake, 1)) futex_wake_all(&awake);
}

void watch_end_job(void) {
  if (atomic_compare_exchange_strong(&job, &begun, begun + 1)) return;
  for (;;) pause(); /* the job has failed, and the process will end */
}

_Noreturn void declare_deadlock(void) {
  atomic_store(&deadlock, 1);
  atomic_fetch_add(&alarms, 1);
  futex_wake_all(&alarms);
  for (;;) pause();
}
