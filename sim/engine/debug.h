/* What a debugger is told about kernels, in a worker that was started to be debugged: the object that was loaded, with
 * the addresses of its sections, by the interface that gdb and lldb know from just-in-time compilers. */
#ifndef ENGINE_DEBUG_H
#define ENGINE_DEBUG_H

#include "tec.h"

/* Whether the worker was started to be debugged. */
extern bool debugged;

/* Lets debuggers attach to this process, and TECs wait for one. */
void debug_begin(void);

/* A file was loaded whose section i lies at `place[i]` (0: nowhere), or it is not used any more. */
void debug_loaded(const uint8_t *file, size_t size, const uint64_t *place);
void debug_unloaded(void);

/* Holds all TECs but the first before their kernel begins, until the debugger has stopped that one and clears
 * `debug_hold`. So breakpoints set at the first stop are reached by all of them. */
void debug_wait(const struct tec *tec);

/* Gives the debugger time to resume all threads after a fault: gdb fails when they end while it does that. */
void debug_before_exit(void);

#endif
