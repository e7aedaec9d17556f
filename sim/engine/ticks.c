#include "ticks.h"

#include "futex.h"
#include "schedule.h"
#include "tec.h"

#define MAX_TICKS 65536u /* per job; later ones are not recorded */

static bool recording;
static uint64_t job_start;
static struct tick *ticks;
static _Atomic uint32_t recorded;

void ticks_begin_job(bool wanted) {
  recording = wanted && (ticks || (ticks = malloc(MAX_TICKS * sizeof *ticks)));
  job_start = now();
  atomic_store(&recorded, 0);
}

const struct tick *ticks_of_job(uint32_t *count) {
  uint32_t all = atomic_load(&recorded);
  *count = recording ? all < MAX_TICKS ? all : MAX_TICKS : 0;
  return ticks;
}

void __compass_tick(uint32_t id, int begin) {
  schedule_point();
  if (!recording) return;
  uint32_t at = atomic_fetch_add(&recorded, 1);
  if (at < MAX_TICKS) ticks[at] = (struct tick){now() - job_start, current_tec()->id, id, begin != 0, 0};
}
