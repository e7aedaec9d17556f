/* The host's processors, and who runs on which. The threads that help are kept off the processor of the main thread: the
 * system would now and then wake one there, since what sent the request has not left its own processor yet, and let it
 * wait until the main thread has done all the work. */
#ifndef ENGINE_PROCESSORS_H
#define ENGINE_PROCESSORS_H

#include "memory_map.h"

/* How many processors the engine may use. */
extern uint32_t processors;

/* The threads that help the main thread, as the system numbers them. */
extern struct helpers {
  _Atomic uint32_t count;
  int ids[MAX_TECS];
} helpers;

/* Finds out how many processors there are; by the main thread, before others call `help`. */
void find_processors(void);

/* The calling thread is one that helps. */
void help(void);

/* Lets the threads that help run on any processor but the one the caller is on; and on any, for tasks that wait for each
 * other. */
void keep_helpers_away(void);
void let_helpers_go_anywhere(void);

#endif
