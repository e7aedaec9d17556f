/* The cores and their TECs, which run kernel code on stacks inside the device window. Each core runs one group of tasks
 * at a time, a task on each of its first TECs. It has as many threads as TECs, kept between jobs; a thread takes the next
 * task that has none, so that a host with fewer processors than TECs need not wake a thread for each of them. Where a task
 * waits for others at a barrier, its thread leaves it there and takes the next; any thread may go on with it later. */
#ifndef ENGINE_TEC_H
#define ENGINE_TEC_H

#include <stdatomic.h>

#include "dma.h"
#include "memory_map.h"
#include "protocol.h"

typedef void kernel_entry(const void *parameters);

/* What one TEC is to run: a task of a task control block chain. */
struct task {
  kernel_entry *entry;
  const void *parameters;
  uint32_t local_id, local_size, group_id;
};

/* What a TEC printed in the job so far. */
struct print_buffer {
  char *text;
  size_t size, room;
  bool cut;
};

struct core {
  uint32_t party;              /* TECs of the group that runs; 0: the core is idle */
  _Atomic uint32_t tasks;      /* its tasks, and how many of them threads have taken: what they wait for */
  _Atomic uint32_t idle;       /* of its threads that help those that sleep until a group begins */
  _Atomic uint32_t unfinished; /* TECs of the group still running */
  _Atomic bool over;           /* none is, and the phase is the next one: another group may begin */
  _Atomic uint32_t meeting;    /* see barrier.c */
  _Atomic uint32_t phase;      /* grows with each barrier that opens, and at the end of the group */
  _Atomic uint32_t sleepers;   /* threads that sleep until the phase is another one */
  _Atomic uint32_t paused;     /* bit i: the core's TEC i was left at a barrier, and no thread has gone on with it */
  _Atomic bool pauses;         /* one of the group was: threads that find nothing to run wait for the next phase */
};

struct tec {
  uint32_t id; /* counted over all cores */
  struct core *core;
  int stop_timer;   /* of the thread that runs its task */
  struct task task;
  int event_state;         /* bit e: event e is allocated; the kernel clears it itself */
  uint32_t events_pending; /* bit e: a transfer of event e is not done yet */
  struct dma_request pending[EVENTS];
  struct aiff_plan *started[EVENTS]; /* in place of a transfer: what the AIFF is to do */
  bool left_at_barrier; /* the barrier counts it among those that arrived: it was at the kernel's last one */
  uint32_t left_phase;  /* in this phase of its core */
  uint64_t thread_sp;   /* while it runs: the stack of its thread, to which it returns */
  uint64_t paused_sp;   /* while it is paused: its own stack; 0 while it runs */
  uint32_t paused_in;   /* it was paused in this phase, and may go on in any other */
  const void *thread;   /* names the thread that ran it last */
  struct print_buffer printed;
  _Atomic uint32_t state;   /* enum tec_state */
  _Atomic uint32_t stopped; /* 1 when `stopped_at` was recorded after an interrupt */
  uint64_t stopped_at;
};

extern struct tec tecs[MAX_TECS];
extern struct core cores[MAX_TECS];

/* What the device has; `shared_bytes` is the shared memory of a core, 0 when it is not limited. */
extern struct device {
  uint32_t cores, tecs_per_core, shared_bytes;
} device;

/* The TEC whose task this thread runs; NULL where it runs none. */
struct tec *current_tec(void);

static inline bool is_engaged(const struct tec *tec) {
  return tec->core && tec->id - (uint32_t)(tec->core - cores) * device.tecs_per_core < tec->core->party;
}

/* Starts a thread of the engine; false when the host cannot. */
bool start_thread(void *(*function)(void *), void *argument);

/* Starts as many threads as the device has TECs and waits until they need nothing but work. False when the host cannot.
 */
bool start_threads(void);

/* Whether somebody tells what runs at the same time: then all TECs begin at once, each on a thread of its own. */
bool looked_at(void);

/* Leaves a TEC where it is until its core's phase is no longer `phase`; its thread does something else meanwhile. */
void pause_task(struct tec *tec, uint32_t phase);

/* Keeps a paused TEC from going on, for good; false where it is not paused. */
bool hold_paused(struct tec *tec);

/* Makes the phase of a core another one, and wakes whoever waits for that. */
void enter_next_phase(struct core *core);

/* Waits until the phase of a core is no longer `phase`. */
void wait_for_phase(struct core *core, uint32_t phase);

/* Wakes all threads for what can run and is not running. */
void offer_tasks(void);

/* Starts a group of at most `device.tecs_per_core` tasks on an idle core. */
void start_group(struct core *core, const struct task *tasks, uint32_t count);

/* Waits until the cores with a bit in `all` are idle (0: until any core is); may run tasks meanwhile. */
void wait_for_cores(uint32_t all);

#endif
