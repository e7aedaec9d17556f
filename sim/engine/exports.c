#include "exports.h"

#include "accelerator.h"
#include "barrier.h"
#include "check.h"
#include "events.h"
#include "fault.h"
#include "float16.h"
#include "print.h"
#include "record.h"
#include "schedule.h"
#include "tec.h"

static int32_t local_id(void) { return (int32_t)current_tec()->task.local_id; }
static int32_t local_size(void) { return (int32_t)current_tec()->task.local_size; }
static int32_t group_id(void) { return (int32_t)current_tec()->task.group_id; }

static void atomic_point(void) { schedule_point(); }

static void assembly(void) {
  kernel_fault(FAULT_UNSUPPORTED, "the kernel runs inline assembly of the NPU, which is not simulated");
}

#define COMPASS(name, function) {"__compass_" #name, (uint64_t)(function)}
#define PLAIN(name) {#name, (uint64_t)(name)}

static struct {
  const char *name;
  uint64_t address;
} exports[] = {
    COMPASS(local_id, local_id),
    COMPASS(local_size, local_size),
    COMPASS(group_id, group_id),
    COMPASS(barrier, __compass_barrier),
    COMPASS(last_barrier, __compass_last_barrier),
    COMPASS(dma, __compass_dma),
    COMPASS(looked_at, __compass_looked_at),
    COMPASS(printf, __compass_printf),
    COMPASS(event_state, __compass_event_state),
    COMPASS(alloc_event, __compass_alloc_event),
    COMPASS(wait_events, __compass_wait_events),
    COMPASS(free_events, __compass_free_events),
    COMPASS(aiff, __compass_aiff),
    COMPASS(assembly, assembly),
    COMPASS(atomic_point, atomic_point),
    COMPASS(tick, __compass_tick),
    COMPASS(profile_enter, __compass_profile_enter),
    COMPASS(profile_point, __compass_profile_point),
    COMPASS(log, log),
    COMPASS(tanh, tanh),
    COMPASS(sin, sin),
    COMPASS(cos, cos),
    COMPASS(exp2, exp2),
    COMPASS(erf, erf),
    COMPASS(pow, pow),
    /* what compilers call on their own account */
    PLAIN(memcpy),
    PLAIN(memmove),
    PLAIN(memset),
    PLAIN(memcmp),
    PLAIN(roundevenf),
    PLAIN(truncf),
    PLAIN(floorf),
    PLAIN(ceilf),
    PLAIN(fmaf),
    PLAIN(fminf),
    PLAIN(fmaxf),
    PLAIN(sqrtf),
    PLAIN(__extendhfsf2),
    PLAIN(__truncsfhf2),
    PLAIN(__truncsfbf2),
    PLAIN(__truncdfbf2),
    PLAIN(__truncdfhf2),
};

uint64_t find_export(const char *name) {
  for (size_t i = 0; i < sizeof exports / sizeof *exports; i++)
    if (strcmp(exports[i].name, name) == 0) return exports[i].address;
  return check_on ? check_export(name) : 0;
}
