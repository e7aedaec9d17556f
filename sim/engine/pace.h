/* What groups of tasks were like when they ran last. It tells how to run them now; that they will be the same is a guess
 * from their code and parameters. */
#ifndef ENGINE_PACE_H
#define ENGINE_PACE_H

#include "tec.h"

struct pace {
  bool brief; /* done sooner than another thread would come to help: the main thread does it alone */
  bool waits; /* tasks waited for each other: each needs a thread that can run whenever a processor is free */
};

/* The group that the main thread is to start now. */
struct pace pace_begin(const struct task *tasks, uint32_t count);

/* One of its tasks, on any thread, cannot go on before others. */
void pace_wait(void);

/* The main thread ran some of its tasks in that time. */
void pace_end(uint32_t tasks, uint64_t nanoseconds);

#endif
