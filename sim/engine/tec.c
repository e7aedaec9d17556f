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
#define TICKET_TECS(ticket) ((ticket) & 0xffu)
#define WATCH_INTERVAL_NS 20000000u /* how often to look at the memory a job fills, and for the parent */
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
  if (atomic_fetch_sub(&core->unfinished, 1) == 1) call_main_thread();
}

static void name_thread(void) {
  char name[16];
  snprintf(name, sizeof name, "TEC %u", self->id);
  prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
}

static void *serve(void *argument) {
  self = argument;
  name_thread();
  struct core *core = self->core;
  uint32_t index = self->id - (uint32_t)(core - cores) * device.tecs_per_core;
  install_signal_stack();
  uint32_t seen = self->first_ticket;
  atomic_fetch_add(&ready_threads, 1);
  futex_wake_all(&ready_threads);
  for (;;) {
    uint32_t drawn = atomic_load(&core->ticket);
    if (drawn == seen) {
      futex_wait(&core->ticket, seen, NULL);
      continue;
    }
    seen = drawn;
    if (index < TICKET_TECS(drawn)) run_task(self);
  }
  return NULL;
}

bool start_threads(void) {
  uint32_t count = device.cores * device.tecs_per_core, seen;
  for (uint32_t i = 0; i < count; i++) {
    struct tec *tec = &tecs[i];
    tec->id = i;
    tec->core = &cores[i / device.tecs_per_core];
    tec->first_ticket = atomic_load(&tec->core->ticket);
    if (pthread_create(&tec->thread, NULL, serve, tec) != 0) return false;
  }
  while ((seen = atomic_load(&ready_threads)) < count) futex_wait(&ready_threads, seen, NULL);
  return true;
}

void start_group(struct core *core, const struct task *tasks, uint32_t count) {
  uint32_t first = (uint32_t)(core - cores) * device.tecs_per_core;
  for (uint32_t i = 0; i < count; i++) {
    tecs[first + i].task = tasks[i];
    atomic_store(&tecs[first + i].state, TEC_RUNNING);
  }
  barrier_reset(core, count);
  atomic_store(&core->unfinished, count);
  if (check_on) check_begin_group();
  if (schedule_on) schedule_begin_group(first, count);
  atomic_store(&core->ticket, ((atomic_load(&core->ticket) >> 8) + 1) << 8 | count);
  futex_wake_all(&core->ticket);
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
  for (;;) {
    uint32_t seen = atomic_load(&attention);
    if (retire_groups(all)) return 0;
    if (atomic_load(&deadlock)) return FAULT_DEADLOCK;
    uint64_t time = now();
    if (time >= deadline) return FAULT_TIMEOUT;
    if (memory_is_exceeded()) return FAULT_MEMORY;
    follow_parent();
    uint64_t left = deadline - time;
    if (left > WATCH_INTERVAL_NS) left = WATCH_INTERVAL_NS;
    futex_wait(&attention, seen, &(struct timespec){0, (int64_t)left});
  }
}
