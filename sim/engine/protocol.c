#include "protocol.h"

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
