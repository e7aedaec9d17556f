/* A thread that looks after the job that runs: its time, the memory it fills, the parent, TECs that wait for each other
 * for ever, and tasks that none has begun. The main thread itself may be in a kernel. */
#ifndef ENGINE_WATCH_H
#define ENGINE_WATCH_H

#include "libc.h"

/* Starts the thread and waits until it needs nothing but work. False when the host cannot. */
bool watch_start(void);

/* Between these two the job is watched; `time_limit` is in nanoseconds. When it takes longer, or fails in another way
 * that is seen from outside, the fault is reported, with the TECs where they stand, and the process ends. */
void watch_begin_job(uint64_t time_limit);
void watch_end_job(void);

/* Called by a TEC that found that no TEC can continue; does not return. */
_Noreturn void declare_deadlock(void);

#endif
