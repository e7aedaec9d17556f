/* Task control blocks in device memory: walks a chain and runs its groups in order. */
#ifndef ENGINE_TCB_H
#define ENGINE_TCB_H

#include "protocol.h"

/* Runs a whole job. Returns the status; on STATUS_FAULT `*fault` says which, on STATUS_REFUSED `message` says why. */
enum status run_chain(const struct request *request, uint32_t *fault, char *message);

#endif
