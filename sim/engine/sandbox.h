/* What the worker process may do: no system call but those the engine itself needs while jobs run, and limits of
 * memory. */
#ifndef ENGINE_SANDBOX_H
#define ENGINE_SANDBOX_H

#include "libc.h"

/* Closes whatever else the parent had open. */
void close_foreign_files(void);

/* Has the system kill the process when the parent ends or lets go of its end of LIFELINE: from then on nothing that
 * happens in this process can keep it alive. False when the system does not do that, or the parent is gone already. */
bool end_with_parent(void);

/* Limits of the process itself, and how many bytes of device memory may be in use (0: any number). */
void limit_memory(uint64_t most, uint64_t shadows);

/* Whether more device memory is in use than allowed; and how much is. */
bool memory_is_exceeded(void);
uint64_t memory_in_use(void);

/* Takes the right to most system calls from all threads, for good; a forbidden one raises SIGSYS. False with a message
 * when the system does not offer that. */
bool forbid_system_calls(char *message, size_t size);

#endif
