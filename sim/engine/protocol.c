#include "protocol.h"

#include "futex.h"

/* How long to look for the next request before sleeping, and what to let others do meanwhile. */
#define LOOK_NS 100000u
int sched_yield(void);

bool send_bytes(int socket, const void *data, size_t size) {
  const char *at = data;
  while (size) {
    ssize_t n = send(socket, at, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

void look_for_bytes(int socket) {
  char next;
  for (uint64_t end = now() + LOOK_NS; recv(socket, &next, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && now() < end;) sched_yield();
}

bool receive_bytes(int socket, void *data, size_t size) {
  char *at = data;
  while (size) {
    ssize_t n = recv(socket, at, size, MSG_WAITALL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}
