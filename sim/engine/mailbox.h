/* Requests and short replies by memory instead of the socket: while both sides look, a job needs no call of the system.
 *
 * The first page of the shared file, which no device address reaches, is a `struct mailbox` (wire.h). The socket says all
 * that must be said: whoever does not want to look any longer goes on there.
 */
#ifndef ENGINE_MAILBOX_H
#define ENGINE_MAILBOX_H

#include "libc.h"
#include "wire.h"

bool mailbox_start(int shared_file);

/* Looks for a request for a moment, or until there is something in the socket. Who runs many small jobs sends the next one
 * soon: it is there before a thread that slept would be awake. */
bool mailbox_take(int socket, struct request *request);

/* Forgets a request that may still lie there: it has come by the socket. */
void mailbox_clear(void);

/* Answers a request: it is DONE in that time and there is nothing more to say, or REPLY_IN_SOCKET. */
void mailbox_answer(uint64_t ticket, uint64_t nanoseconds);

#endif
