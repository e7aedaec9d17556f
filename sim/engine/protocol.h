/* Sending and receiving the messages of wire.h. */
#ifndef ENGINE_PROTOCOL_H
#define ENGINE_PROTOCOL_H

#include "libc.h"
#include "wire.h"

bool send_bytes(int socket, const void *data, size_t size);
bool receive_bytes(int socket, void *data, size_t size);

/* Returns when there is something to receive, or after a moment. Who runs many small jobs sends the next one soon: it is
 * there before a thread that slept would be awake. */
void look_for_bytes(int socket);

#endif
