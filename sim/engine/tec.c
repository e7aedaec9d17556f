#include "tec.h"

#include "barrier.h"
#include "fault.h"
#include "futex.h"

struct tec tecs[MAX_TECS];
uint32_t active_tecs;

static uint32_t threads;        /* TEC threads that exist */
static _Atomic uint32_t ticket; /* changes with every group and wakes the TECs; low byte: their number */
#define TICKET_TECS(ticket) ((ticket) & 0xffu)
static _Atomic uint32_t unfinished; /* TECs of the group still running */
static _Atomic uint32_t deadlock;
static _Atomic uint32_t attention; /* grows when the main thread should look */
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
  tec->event_state = 0;
  tec->events_pending = 0;
  call_on_stack(tec->task.entry, tec->task.parameters, stack_high(tec->id) - 64);
  atomic_store(&tec->state, TEC_FINISHED);
  barrier_leave();
  if (atomic_fetch_sub(&unfinished, 1) == 1) call_main_thread();
}

static void *serve(void *argument) {
  self = argument;
  install_signal_stack();
  uint32_t seen = self->first_ticket;
  for (;;) {
    uint32_t drawn = atomic_load(&ticket);
    if (drawn == seen) {
      futex_wait(&ticket, seen, NULL);
      continue;
    }
    seen = drawn;
    if (self->id < TICKET_TECS(drawn)) run_task(self);
  }
  return NULL;
}

static bool start_threads(uint32_t count) {
  for (; threads < count; threads++) {
    struct tec *tec = &tecs[threads];
    tec->id = threads;
    tec->first_ticket = atomic_load(&ticket);
    if (pthread_create(&tec->thread, NULL, serve, tec) != 0) return false;
  }
  return true;
}

uint32_t run_group(const struct task *tasks, uint32_t count, uint64_t deadline) {
  if (!start_threads(count)) return FAULT_NO_THREAD;
  for (uint32_t i = 0; i < count; i++) {
    tecs[i].task = tasks[i];
    atomic_store(&tecs[i].state, TEC_RUNNING);
  }
  barrier_reset(count);
  atomic_store(&unfinished, count);
  active_tecs = count;
  uint32_t seen = atomic_load(&attention);
  atomic_store(&ticket, ((atomic_load(&ticket) >> 8) + 1) << 8 | count);
  futex_wake_all(&ticket);
  for (;;) {
    if (atomic_load(&unfinished) == 0) return 0;
    if (atomic_load(&deadlock)) return FAULT_DEADLOCK;
    uint64_t time = now();
    if (time >= deadline) return FAULT_TIMEOUT;
    uint64_t left = deadline - time;
    struct timespec timeout = {(int64_t)(left / 1000000000u), (int64_t)(left % 1000000000u)};
    futex_wait(&attention, seen, &timeout);
    seen = atomic_load(&attention);
  }
}
