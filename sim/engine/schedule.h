/* Reproducible runs: one TEC runs at a time, and a seed decides which one goes on.
 *
 * The turn changes where TECs can see each other's work: at DMA transfers, events, barriers, printf and profiler marks,
 * and in between after a number of instructions, for which the processor's single-step trap counts them. Asynchronous
 * transfers, otherwise done when they are waited for, may then be done earlier. */
#ifndef ENGINE_SCHEDULE_H
#define ENGINE_SCHEDULE_H

#include "tec.h"

extern bool schedule_on;

/* Set once: every run has a schedule, in which each TEC runs from barrier to barrier and the first that can goes on. */
extern bool schedule_in_order;

/* Before a job: `seed` 0 lets the TECs run freely. */
void schedule_begin_job(uint64_t seed);

/* In the main thread, before `count` TECs from `first` on start. */
void schedule_begin_group(uint32_t first, uint32_t count);

/* In a TEC: waits for its first turn; gives its turn away for good. */
void schedule_enter(struct tec *tec);
void schedule_leave(struct tec *tec);

/* In the TEC whose turn it is: waits until it was released and has its turn again; releases all that wait. */
void schedule_block(void);
void schedule_release(void);

/* In the TEC whose turn it is: another one may go on from here. */
void schedule_change_turn(void);
static inline void schedule_point(void) {
  if (schedule_on) schedule_change_turn();
}

/* The handler of the trap that follows each single step. `registers` are those of the signal's context. */
void schedule_after_step(uint64_t *registers);

#endif
