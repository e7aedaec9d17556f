/* The barrier at which all TECs of a group meet. */
#ifndef ENGINE_BARRIER_H
#define ENGINE_BARRIER_H

#include "libc.h"

void barrier_reset(uint32_t tecs);

/* A TEC ended: those that wait for it would wait for ever. */
void barrier_leave(void);

/* The exported function: returns when all TECs of the group have called it. */
void __compass_barrier(void);

#endif
