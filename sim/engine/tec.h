/* The TECs: one thread each, kept between jobs, running kernel code on a stack inside the device window. */
#ifndef ENGINE_TEC_H
#define ENGINE_TEC_H

#include <stdatomic.h>

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

struct tec {
  uint32_t id;
  pthread_t thread;
  uint32_t first_ticket; /* groups up to here began before the thread did */
  struct task task;
  int event_state; /* bit e: event e is allocated; the kernel clears it itself */
  uint32_t events_pending;
  struct print_buffer printed;
  _Atomic uint32_t state;   /* enum tec_state */
  _Atomic uint32_t stopped; /* 1 when `stopped_at` was recorded after an interrupt */
  uint64_t stopped_at;
};

extern struct tec tecs[MAX_TECS];
extern uint32_t active_tecs; /* TECs of the group that runs */

/* The TEC whose thread this is; NULL in the engine's main thread. */
struct tec *current_tec(void);

/* Runs one group of tasks to the end. Returns 0, FAULT_NO_THREAD, or FAULT_TIMEOUT or FAULT_DEADLOCK with the TECs
 * still standing where they were. `deadline` is in nanoseconds of `now()`. */
uint32_t run_group(const struct task *tasks, uint32_t count, uint64_t deadline);

/* Called by a TEC that found that no TEC can continue; does not return. */
_Noreturn void declare_deadlock(void);

#endif
