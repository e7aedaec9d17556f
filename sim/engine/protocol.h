/* Sending and receiving the messages of wire.h. */
#ifndef ENGINE_PROTOCOL_H
#define ENGINE_PROTOCOL_H

#include "libc.h"
#include "wire.h"

bool send_bytes(int socket, const void *data, size_t size);
bool receive_bytes(int socket, void *data, size_t size);

#endif
