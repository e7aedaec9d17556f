/* Marks that kernels set for the profiler. */
#ifndef ENGINE_TICKS_H
#define ENGINE_TICKS_H

#include "protocol.h"

/* Before a job: forgets what was recorded; marks are only recorded when `wanted`. */
void ticks_begin_job(bool wanted);

/* All marks of the job in the order in which they were set; `*count` of them. */
const struct tick *ticks_of_job(uint32_t *count);

/* The exported function. */
void __compass_tick(uint32_t id, int begin);

#endif
