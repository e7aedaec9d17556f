/* The AIFF as kernels start it: on the memory of the job, at once or with an event. */
#ifndef ENGINE_ACCELERATOR_H
#define ENGINE_ACCELERATOR_H

#include "aiff.h"
#include "tec.h"

/* In the main thread: a job of X2 or of X3 begins, whose starts may make use of the assumptions with a bit in `assumed`. */
void accelerator_begin_job(bool is_x3, uint32_t assumed);

/* The assumptions that the job made use of, in words; empty when there were none. */
void accelerator_end_job(char *message, size_t size);

/* Runs what was started with an event of the TEC. */
void accelerator_finish(struct tec *tec, uint32_t event);

/* Exported: the three chains of descriptors; `event` -1: the kernel waits. */
void __compass_aiff(uint32_t control, uint32_t parameters, uint32_t activations, int event);

#endif
