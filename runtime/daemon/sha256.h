/* HMAC-SHA256 (RFC 2104, FIPS 180-4), by which both sides prove that they know a token. */
#ifndef DAEMON_SHA256_H
#define DAEMON_SHA256_H

#include "os.h"

struct part {
  const void *data;
  size_t size;
};

/* Of the parts one after the other, in hexadecimal, with a NUL. */
void hmac_hex(const void *key, size_t key_size, const struct part *parts, int count, char out[65]);

#endif
