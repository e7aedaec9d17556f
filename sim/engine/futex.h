/* Waiting for a word to change. */
#ifndef ENGINE_FUTEX_H
#define ENGINE_FUTEX_H

#include <stdatomic.h>

#include "libc.h"

/* Returns when the word is no longer `value`, or a while after `timeout` (NULL: none), or for no reason; true when it was
 * woken. */
static inline bool futex_wait(_Atomic uint32_t *word, uint32_t value, const struct timespec *timeout) {
  return syscall(SYS_FUTEX, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0) == 0;
}

/* Wakes at most so many; how many it were. */
static inline uint32_t futex_wake(_Atomic uint32_t *word, uint32_t count) {
  long woken = syscall(SYS_FUTEX, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
  return woken > 0 ? (uint32_t)woken : 0;
}

#define EVERYONE 0x7fffffffu
static inline void futex_wake_all(_Atomic uint32_t *word) { futex_wake(word, EVERYONE); }

static inline uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.seconds * 1000000000u + (uint64_t)t.nanoseconds;
}

#endif
