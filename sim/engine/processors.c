#include "processors.h"

#include <stdatomic.h>

#include "libc.h"

#define MOST_PROCESSORS 1024
#define NONE (-1)

uint32_t processors = 1;
struct helpers helpers;
static uint64_t allowed[MOST_PROCESSORS / 64];
static int taken = NONE; /* the processor that helpers may not use */

void find_processors(void) {
  if (sched_getaffinity(0, sizeof allowed, allowed) != 0) return;
  processors = 0;
  for (int i = 0; i < MOST_PROCESSORS / 64; i++) processors += (uint32_t)__builtin_popcountll(allowed[i]);
}

void help(void) { helpers.ids[atomic_fetch_add(&helpers.count, 1)] = gettid(); }

void keep_helpers_away(void) {
  int own = processors > 1 ? sched_getcpu() : NONE;
  if (own == taken || own < 0 || own >= MOST_PROCESSORS) return;
  taken = own;
  uint64_t others[MOST_PROCESSORS / 64];
  memcpy(others, allowed, sizeof others);
  others[own / 64] &= ~(1ull << own % 64);
  /* Refused where the process has fewer processors by now: then they may run anywhere, as before. */
  for (uint32_t i = 0; i < atomic_load(&helpers.count); i++) sched_setaffinity(helpers.ids[i], sizeof others, others);
}
