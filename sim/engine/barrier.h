/* The barrier at which all TECs of a group meet. */
#ifndef ENGINE_BARRIER_H
#define ENGINE_BARRIER_H

#include "tec.h"

/* Makes the barrier of a core ready for a group. */
void barrier_reset(struct core *core, uint32_t count);

/* A TEC ended: those that wait for it would wait for ever. */
void barrier_leave(struct tec *tec);

/* Whether a TEC that went on from the last barrier of its kernel would still wait there for others. */
bool barrier_keeps(struct tec *tec);

/* The exported functions. The first returns when all TECs of the group have called one of them. The second is for the
 * end of a kernel: nothing follows but the return, so the TEC need not wait for the others, nor they be woken for it. */
void __compass_barrier(void);
void __compass_last_barrier(void);

#endif
