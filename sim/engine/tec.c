#include "tec.h"

#include "barrier.h"
#include "check.h"
#include "debug.h"
#include "events.h"
#include "fault.h"
#include "futex.h"
#include "record.h"
#include "sandbox.h"
#include "schedule.h"

struct tec tecs[MAX_TECS];
struct core cores[MAX_TECS];
struct device device = {.cores = 1, .tecs_per_core = MAX_TECS};

#define PR_SET_NAME 15
#define TASKS(word) ((word) & 0xffu)
#define TAKEN(word) ((word) >> 8)
#define ONE_TAKEN 0x100u
#define WATCH_INTERVAL_NS 20000000u /* how often to look at the memory a job fills, and for the parent */
#define PATIENCE_NS 5000000u        /* how long a task may wait for a TEC that ends: some wait for it without a barrier */
uint32_t processors = 1;
static _Atomic uint32_t deadlock;
static _Atomic uint32_t attention; /* grows when the main thread should look */
static _Atomic uint32_t ready_threads;
static _Thread_local struct tec *self;

struct tec *current_tec(void) { return self; }

static void call_main_thread(void) {
  atomic_fetch_add(&attention, 1);
  futex_wake_all(&attention);
}

_Noreturn void declare_deadlock(void) {
  atomic_store(&deadlock, 1);
  call_main_thread();
  for (;;) pause();
}

/* Calls `entry` with the stack pointer at `stack`. The frame pointer leads back, so a debugger sees both stacks. */
__attribute__((naked)) static void call_on_stack(kernel_entry *entry, const void *parameters, uint64_t stack) {
  __asm__(
      "pushq %rbp\n"
      "movq %rsp, %rbp\n"
      "movq %rdi, %rax\n"
      "movq %rsi, %rdi\n"
      "movq %rdx, %rsp\n"
      "callq *%rax\n"
      "movq %rbp, %rsp\n"
      "popq %rbp\n"
      "ret");
}

static void run_task(struct tec *tec) {
  struct core *core = tec->core;
  self = tec;
  tec->thread = pthread_self();
  atomic_store(&tec->state, TEC_RUNNING);
  tec->event_state = 0;
  tec->events_pending = 0;
  tec->left_at_barrier = false;
  debug_wait(tec);
  record_begin_task(tec);
  if (schedule_on) schedule_enter(tec);
  if (check_on) check_begin_task(tec);
  call_on_stack(tec->task.entry, tec->task.parameters, stack_high(tec->id) - 64);
  if (check_on) check_end_task(tec);
  finish_events(tec, ALL_EVENTS);
  record_end_task(tec);
  atomic_store(&tec->state, TEC_FINISHED);
  barrier_leave(tec);
  if (schedule_on) schedule_leave(tec);
  self = NULL;
  if (atomic_fetch_sub(&core->unfinished, 1) == 1) call_main_thread();
}

/* In a debugger each TEC has a thread of its name, as one expects there. */
static void name_thread(const struct tec *tec) {
  char name[16];
  snprintf(name, sizeof name, "TEC %u", tec->id);
  prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
}

static void *serve(void *argument) {
  const struct tec *own = argument;
  struct core *core = own->core;
  struct tec *first = &tecs[(uint32_t)(core - cores) * device.tecs_per_core];
  if (debugged) name_thread(own);
  install_signal_stack();
  atomic_fetch_add(&ready_threads, 1);
  futex_wake_all(&ready_threads);
  for (;;) {
    uint32_t seen = atomic_load(&core->tasks);
    struct tec *next = first + TAKEN(seen);
    if (TAKEN(seen) == TASKS(seen) || (debugged && next != own)) {
      futex_wait(&core->tasks, seen, NULL);
    } else if (atomic_compare_exchange_strong(&core->tasks, &seen, seen + ONE_TAKEN)) {
      if (debugged) futex_wake_all(&core->tasks);
      run_task(next);
    }
  }
  return NULL;
}

static void count_processors(void) {
  uint64_t allowed[16] = {0};
  if (sched_getaffinity(0, sizeof allowed, allowed) != 0) return;
  processors = 0;
  for (int i = 0; i < 16; i++) processors += (uint32_t)__builtin_popcountll(allowed[i]);
}

bool start_threads(void) {
  uint32_t count = device.cores * device.tecs_per_core, seen;
  count_processors();
  for (uint32_t i = 0; i < count; i++) {
    struct tec *tec = &tecs[i];
    tec->id = i;
    tec->core = &cores[i / device.tecs_per_core];
    if (pthread_create(&tec->thread, NULL, serve, tec) != 0) return false;
  }
  while ((seen = atomic_load(&ready_threads)) < count) futex_wait(&ready_threads, seen, NULL);
  return true;
}

static bool has_task(const struct core *core) {
  uint32_t seen = atomic_load(&core->tasks);
  return TAKEN(seen) != TASKS(seen);
}

void offer_task(struct core *core) {
  if (has_task(core)) futex_wake(&core->tasks, 1);
}

/* Wakes threads for all tasks that none has taken; whether there were any. */
static bool offer_tasks(void) {
  bool any = false;
  for (uint32_t i = 0; i < device.cores; i++) {
    if (!has_task(&cores[i])) continue;
    futex_wake_all(&cores[i].tasks);
    any = true;
  }
  return any;
}

void start_group(struct core *core, const struct task *tasks, uint32_t count) {
  uint32_t first = (uint32_t)(core - cores) * device.tecs_per_core;
  for (uint32_t i = 0; i < count; i++) {
    tecs[first + i].task = tasks[i];
    atomic_store(&tecs[first + i].state, TEC_NOT_STARTED);
  }
  barrier_reset(core, count);
  atomic_store(&core->unfinished, count);
  if (check_on) check_begin_group();
  if (schedule_on) schedule_begin_group(first, count);
  atomic_store(&core->tasks, count);
  bool watched = schedule_on || recording || debugged || check_on; /* somebody tells what runs at the same time */
  futex_wake(&core->tasks, watched || count < processors ? count : processors);
}

/* Marks the cores idle whose groups have ended; whether those that are waited for are among them. */
static bool retire_groups(uint32_t all) {
  uint32_t busy = 0;
  for (uint32_t i = 0; i < device.cores; i++) {
    if (cores[i].party && atomic_load(&cores[i].unfinished) == 0) cores[i].party = 0;
    busy |= (uint32_t)(cores[i].party != 0) << i;
  }
  return all ? !(busy & all) : busy != (1u << device.cores) - 1;
}

uint32_t wait_for_cores(uint32_t all, uint64_t deadline) {
  uint32_t interval = PATIENCE_NS;
  for (;;) {
    uint32_t seen = atomic_load(&attention);
    if (retire_groups(all)) return 0;
    if (atomic_load(&deadlock)) return FAULT_DEADLOCK;
    uint64_t time = now();
    if (time >= deadline) return FAULT_TIMEOUT;
    if (memory_is_exceeded()) return FAULT_MEMORY;
    follow_parent();
    uint64_t left = deadline - time;
    if (left > interval) left = interval;
    futex_wait(&attention, seen, &(struct timespec){0, (int64_t)left});
    if (!offer_tasks()) interval = WATCH_INTERVAL_NS;
  }
}
