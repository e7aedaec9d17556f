/* Task control blocks in device memory: walks a chain and runs its groups in order. */
#ifndef ENGINE_TCB_H
#define ENGINE_TCB_H

#include "protocol.h"

/* Runs a whole job. Returns STATUS_DONE, or STATUS_REFUSED with the reason in `message`. */
enum status run_chain(const struct request *request, char *message);

#endif
