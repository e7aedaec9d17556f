#include "processors.h"

#include <stdatomic.h>

#include "libc.h"

#define MOST_PROCESSORS 1024
#define NONE (-1)

uint32_t processors = 1;
struct helpers helpers;
static uint64_t allowed[MOST_PROCESSORS / 64];
static _Atomic int taken = NONE; /* the processor that helpers may not use */

void find_processors(void) {
  if (sched_getaffinity(0, sizeof allowed, allowed) != 0) return;
  processors = 0;
  for (int i = 0; i < MOST_PROCESSORS / 64; i++) processors += (uint32_t)__builtin_popcountll(allowed[i]);
}

void help(void) { helpers.ids[atomic_fetch_add(&helpers.count, 1)] = gettid(); }

/* Refused where the process has fewer processors by now: then they may run where they could before. */
static void send_helpers(const uint64_t *where) {
  for (uint32_t i = 0; i < atomic_load(&helpers.count); i++) sched_setaffinity(helpers.ids[i], sizeof allowed, where);
}

void keep_helpers_away(void) {
  int own = processors > 1 ? sched_getcpu() : NONE;
  if (own < 0 || own >= MOST_PROCESSORS || atomic_exchange(&taken, own) == own) return;
  uint64_t others[MOST_PROCESSORS / 64];
  memcpy(others, allowed, sizeof others);
  others[own / 64] &= ~(1ull << own % 64);
  send_helpers(others);
}

void let_helpers_go_anywhere(void) {
  if (atomic_load(&taken) != NONE && atomic_exchange(&taken, NONE) != NONE) send_helpers(allowed);
}
