/* How long groups of tasks take. One that is done sooner than another thread would come to help is left to the main
 * thread alone; that it will be as quick as the last time is a guess from its code and parameters. */
#ifndef ENGINE_PACE_H
#define ENGINE_PACE_H

#include "tec.h"

/* The group that the main thread is to run tasks of next; true when it was brief the last time. */
bool pace_begin(const struct task *tasks, uint32_t count);

/* The main thread ran some of its tasks in that time. */
void pace_end(uint32_t tasks, uint64_t nanoseconds);

#endif
