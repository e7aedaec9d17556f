/* What groups of tasks were like when they ran last. It tells how to run them now; that they will be the same is a guess
 * from their code and parameters. */
#ifndef ENGINE_PACE_H
#define ENGINE_PACE_H

#include "tec.h"

/* The group that the main thread is to start now: whether it is done sooner than another thread would come to help, so that
 * the main thread does it alone. */
bool pace_begin(const struct task *tasks, uint32_t count);

/* The main thread ran some of its tasks in that time. */
void pace_end(uint32_t tasks, uint64_t nanoseconds);

#endif
