#include "tec.h"

#include "barrier.h"
#include "check.h"
#include "debug.h"
#include "events.h"
#include "fault.h"
#include "futex.h"
#include "pace.h"
#include "processors.h"
#include "record.h"
#include "schedule.h"

struct tec tecs[MAX_TECS];
struct core cores[MAX_TECS];
struct device device = {.cores = 1, .tecs_per_core = MAX_TECS};

#define PR_SET_NAME 15
#define THREAD_STACK_SIZE (256u << 10) /* the engine's; kernels have stacks of the device */
/* The word of a core's tasks: how many there are, how many were taken from the first on, and from the last on. */
#define TASKS(word) ((word) & 0xffu)
#define TAKEN_FIRST(word) ((word) >> 8 & 0xffu)
#define TAKEN_LAST(word) ((word) >> 16)
#define ONE_FIRST 0x100u
#define ONE_LAST 0x10000u
#define ALL_TAKEN(word) (TAKEN_FIRST(word) + TAKEN_LAST(word) == TASKS(word))
/* How often to look before sleeping, of 25 ns or so: the others arrive within microseconds, if each has a processor, and so
 * does the next group of a chain. */
#define SPINS 1000
static _Atomic uint32_t ended_groups, main_waits;
static _Atomic uint32_t ready_threads;
static _Thread_local struct tec *self;

struct tec *current_tec(void) { return self; }

bool looked_at(void) { return schedule_on || debugged || check_on; }

/* What a function must find again when another stack has been used meanwhile. */
#define SAVE                                                       \
  "pushq %rbp\n"                                                   \
  "movq %rsp, %rbp\n"                                              \
  "pushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
#define RESTORE_AND_RETURN "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret"

/* Calls `entry` with the stack pointer at `stack`, and returns when it has returned, to the stack that `own` names then,
 * or when it leaves its stack by `switch_stacks`. The frame pointer leads back, so a debugger sees both stacks. */
__attribute__((naked)) static void call_on_stack(kernel_entry *entry, const void *parameters, uint64_t stack,
                                                 uint64_t *own) {
  __asm__(SAVE
          "movq %rsp, (%rcx)\n"
          "movq %rcx, %rbx\n"
          "movq %rdi, %rax\n"
          "movq %rsi, %rdi\n"
          "movq %rdx, %rsp\n"
          "callq *%rax\n"
          "movq (%rbx), %rsp\n" RESTORE_AND_RETURN);
}

/* Goes on at `there`, where a stack was left by one of these two functions; `*here` is where the present one is left. */
__attribute__((naked)) static void switch_stacks(uint64_t *here, uint64_t there) {
  __asm__(SAVE
          "movq %rsp, (%rdi)\n"
          "movq %rsi, %rsp\n" RESTORE_AND_RETURN);
}

static struct tec *first_of(const struct core *core) {
  return &tecs[(uint32_t)(core - cores) * device.tecs_per_core];
}

static uint32_t bit_of(const struct tec *tec) { return 1u << (tec - first_of(tec->core)); }

static void begin_task(struct tec *tec) {
  tec->event_state = 0;
  tec->events_pending = 0;
  tec->left_at_barrier = false;
  debug_wait(tec);
  record_begin_task(tec);
  if (schedule_on) schedule_enter(tec);
  if (check_on) check_begin_task(tec);
  call_on_stack(tec->task.entry, tec->task.parameters, stack_high(tec->id) - 64, &tec->thread_sp);
}

static void end_task(struct tec *tec) {
  struct core *core = tec->core;
  if (check_on) check_end_task(tec);
  finish_events(tec, ALL_EVENTS);
  record_end_task(tec);
  atomic_store(&tec->state, TEC_FINISHED);
  barrier_leave(tec);
  if (schedule_on) schedule_leave(tec);
  self = NULL;
  if (atomic_fetch_sub(&core->unfinished, 1) != 1) return;
  enter_next_phase(core);
  atomic_store(&core->over, true); /* not before: this phase must not end a barrier of the next group */
  atomic_fetch_add(&ended_groups, 1);
  if (atomic_load(&main_waits)) futex_wake_all(&ended_groups);
}

/* Runs a TEC's task from its beginning, or from where it was paused, until it ends or is paused. */
static void run(struct tec *tec, bool begins) {
  self = tec;
  tec->thread = &self;
  tec->stop_timer = stop_timer();
  atomic_store(&tec->state, TEC_RUNNING);
  if (begins) {
    begin_task(tec);
  } else {
    uint64_t there = tec->paused_sp;
    tec->paused_sp = 0;
    switch_stacks(&tec->thread_sp, there);
  }
  if (!tec->paused_sp) {
    end_task(tec);
    return;
  }
  self = NULL;
  atomic_store(&tec->core->pauses, true);
  atomic_fetch_or(&tec->core->paused, bit_of(tec));
}

void pause_task(struct tec *tec, uint32_t phase) {
  tec->paused_in = phase;
  switch_stacks(&tec->paused_sp, tec->thread_sp);
}

bool hold_paused(struct tec *tec) { return atomic_fetch_and(&tec->core->paused, ~bit_of(tec)) & bit_of(tec); }

void enter_next_phase(struct core *core) {
  atomic_fetch_add(&core->phase, 1);
  if (atomic_load(&core->sleepers)) futex_wake_all(&core->phase);
}

/* Looks at a word for a while; whether it is no longer `value`. */
static bool changes(const _Atomic uint32_t *word, uint32_t value) {
  for (int i = 0; i < (processors > 1 ? SPINS : 1); i++) {
    if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
    __builtin_ia32_pause();
  }
  return false;
}

void wait_for_phase(struct core *core, uint32_t phase) {
  if (changes(&core->phase, phase)) return;
  atomic_fetch_add(&core->sleepers, 1);
  while (atomic_load(&core->phase) == phase) futex_wait(&core->phase, phase, NULL);
  atomic_fetch_sub(&core->sleepers, 1);
}

static bool has_task(const struct core *core) {
  uint32_t seen = atomic_load(&core->tasks);
  return !ALL_TAKEN(seen);
}

/* The core's paused TECs that may go on, of those that a thread ran last; NULL: any. */
static uint32_t released(const struct core *core, const void *thread) {
  uint32_t phase = atomic_load(&core->phase), found = 0;
  for (uint32_t left = atomic_load(&core->paused); left; left &= left - 1) {
    const struct tec *tec = &first_of(core)[__builtin_ctz(left)];
    if (tec->paused_in != phase && (!thread || tec->thread == thread)) found |= left & -left;
  }
  return found;
}

/* Wakes at most so many of the threads that help a core. */
static void wake_idle(struct core *core, uint32_t count) {
  atomic_fetch_sub(&core->idle, futex_wake(&core->tasks, count));
}

/* Waits until the tasks of a core are no longer `seen`. */
static void wait_for_tasks(struct core *core, uint32_t seen) {
  if (changes(&core->tasks, seen)) return;
  atomic_fetch_add(&core->idle, 1);
  if (!futex_wait(&core->tasks, seen, NULL)) atomic_fetch_sub(&core->idle, 1);
}

void offer_tasks(void) {
  static uint32_t last[MAX_TECS];
  for (uint32_t i = 0; i < device.cores; i++) {
    uint32_t phase = atomic_load(&cores[i].phase);
    bool waits = has_task(&cores[i]) || (released(&cores[i], NULL) && phase == last[i]);
    if (waits) wake_idle(&cores[i], EVERYONE);
    last[i] = phase;
  }
}

/* Goes on with a paused TEC: one of this thread, whose data are in its cache, or else another one. */
static bool run_released(struct core *core, bool first) {
  uint32_t found = released(core, &self);
  if (!found) found = released(core, NULL);
  if (!found) return false;
  struct tec *tec = &first_of(core)[first ? __builtin_ctz(found) : 31 - __builtin_clz(found)];
  if (!hold_paused(tec)) return true;
  if (tec->paused_in != atomic_load(&core->phase))
    run(tec, false);
  else /* meanwhile it went on and was paused again */
    atomic_fetch_or(&core->paused, bit_of(tec));
  return true;
}

/* Runs the next task of the core, if there is one that none has taken. The main thread begins at one end and the others
 * at the other: so a processor has the same part of the data from job to job, and in its cache. */
static bool run_new(struct core *core, bool first) {
  uint32_t seen = atomic_load(&core->tasks);
  if (ALL_TAKEN(seen)) return false;
  if (!atomic_compare_exchange_strong(&core->tasks, &seen, seen + (first ? ONE_FIRST : ONE_LAST))) return true;
  if (debugged) wake_idle(core, EVERYONE); /* the next one has a thread of its own */
  run(&first_of(core)[first ? TAKEN_FIRST(seen) : TASKS(seen) - 1 - TAKEN_LAST(seen)], true);
  return true;
}

/* Runs something of the core, or waits for that; false when nothing is left for this thread. */
static bool run_next(struct core *core, bool first) {
  uint32_t phase = atomic_load(&core->phase);
  if (run_new(core, first) || run_released(core, first)) return true;
  if (!atomic_load(&core->pauses) || !atomic_load(&core->unfinished)) return false;
  wait_for_phase(core, phase);
  return true;
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
  if (debugged) name_thread(own);
  prepare_thread();
  help();
  atomic_fetch_add(&ready_threads, 1);
  futex_wake_all(&ready_threads);
  for (;;) {
    uint32_t seen = atomic_load(&core->tasks);
    bool another = debugged && &first_of(core)[TAKEN_FIRST(seen)] != own;
    if (another || !run_next(core, debugged)) wait_for_tasks(core, seen);
  }
  return NULL;
}

bool start_thread(void *(*function)(void *), void *argument) {
  pthread_attr_t small;
  pthread_t thread;
  return pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, THREAD_STACK_SIZE) == 0 &&
         pthread_create(&thread, &small, function, argument) == 0;
}

bool start_threads(void) {
  uint32_t count = device.cores * device.tecs_per_core, seen;
  find_processors();
  for (uint32_t i = 0; i < count; i++) {
    struct tec *tec = &tecs[i];
    tec->id = i;
    tec->core = &cores[i / device.tecs_per_core];
    if (!start_thread(serve, tec)) return false;
  }
  while ((seen = atomic_load(&ready_threads)) < count) futex_wait(&ready_threads, seen, NULL);
  return true;
}

/* Sees to it that as many threads are awake as can run at once beside the main thread, which runs tasks too. */
static void wake_threads(struct core *core, const struct task *tasks, uint32_t count) {
  uint32_t at_once = looked_at() || count < processors ? count : processors;
  if (!looked_at() && device.cores == 1) {
    if (pace_begin(tasks, count)) return;
    keep_helpers_away();
    at_once--;
  }
  uint32_t idle = atomic_load(&core->idle), awake = idle < device.tecs_per_core ? device.tecs_per_core - idle : 0;
  if (at_once > awake) wake_idle(core, at_once - awake);
}

void start_group(struct core *core, const struct task *tasks, uint32_t count) {
  struct tec *first = first_of(core);
  for (uint32_t i = 0; i < count; i++) {
    first[i].task = tasks[i];
    first[i].paused_sp = 0;
    atomic_store(&first[i].state, TEC_NOT_STARTED);
  }
  barrier_reset(core, count);
  atomic_store(&core->pauses, false);
  atomic_store(&core->unfinished, count);
  atomic_store(&core->over, false);
  if (schedule_on) schedule_begin_group(first->id, count);
  atomic_store(&core->tasks, count);
  wake_threads(core, tasks, count);
}

/* Marks the cores idle whose groups have ended; whether those that are waited for are among them. */
static bool retire_groups(uint32_t all) {
  uint32_t busy = 0;
  for (uint32_t i = 0; i < device.cores; i++) {
    if (cores[i].party && atomic_load(&cores[i].over)) cores[i].party = 0;
    busy |= (uint32_t)(cores[i].party != 0) << i;
  }
  return all ? !(busy & all) : busy != (1u << device.cores) - 1;
}

/* Runs the tasks of the core that no other thread takes. */
static void run_tasks(struct core *core) {
  uint32_t before = TAKEN_FIRST(atomic_load(&core->tasks));
  uint64_t start = now();
  while (run_next(core, true)) {}
  uint32_t ran = TAKEN_FIRST(atomic_load(&core->tasks)) - before;
  if (ran) pace_end(ran, now() - start);
}

void wait_for_cores(uint32_t all) {
  if (device.cores == 1) all = 1;
  bool works = all == (1u << device.cores) - 1 && !looked_at(); /* else it must start other groups when a core is idle */
  for (;;) {
    uint32_t seen = atomic_load(&ended_groups);
    for (uint32_t i = 0; works && i < device.cores; i++) run_tasks(&cores[i]);
    for (int i = 0; i < (processors > 1 ? SPINS : 1); i++) {
      if (retire_groups(all)) return;
      __builtin_ia32_pause();
    }
    atomic_store(&main_waits, 1);
    futex_wait(&ended_groups, seen, NULL);
    atomic_store(&main_waits, 0);
  }
}
