#include "accelerator.h"

#include "check_dma.h"
#include "events.h"
#include "fault.h"
#include "record.h"
#include "schedule.h"

/* All memory of the job. Device addresses are host addresses. */
static struct aiff_range window[] = {
    {WINDOW_LOW, ENGINE_LOW - WINDOW_LOW, NULL},
    {ENGINE_HIGH, WINDOW_HIGH - ENGINE_HIGH, NULL},
};
static const struct aiff_memory memory = {window, sizeof window / sizeof *window};

static uint32_t generation, may_assume;
static _Atomic uint32_t assumed;

enum { LONGEST = 400 };

void accelerator_begin_job(bool is_x3, uint32_t bits) {
  for (uint64_t i = 0; i < memory.count; i++) window[i].host = (uint8_t *)window[i].address;
  generation = is_x3 ? AIFF_X3 : AIFF_X2;
  may_assume = bits;
  atomic_store(&assumed, 0);
}

void accelerator_end_job(char *message, size_t size) {
  uint32_t bits = atomic_load(&assumed);
  if (!bits) return;
  char names[LONGEST];
  aiff_assumption_names(bits, names, sizeof names);
  snprintf(message, size, "the results of the AIFF rest on assumptions: %s", names);
}

static void run(struct tec *tec, struct aiff_plan *plan, int event) {
  char message[LONGEST];
  plan->message = message;
  plan->message_size = sizeof message;
  if (check_on) check_aiff_runs(tec, plan, event);
  bool done = aiff_execute(plan);
  atomic_fetch_or(&assumed, plan->used);
  aiff_release(plan);
  if (!done) kernel_fault(FAULT_UNSUPPORTED, message);
}

void accelerator_finish(struct tec *tec, uint32_t event) {
  struct aiff_plan *plan = tec->started[event];
  tec->started[event] = NULL;
  run(tec, plan, (int)event);
  free(plan);
}

static void start(struct tec *tec, const struct aiff_plan *plan, int number) {
  uint32_t event = (uint32_t)number % EVENTS;
  finish_events(tec, 1u << event);
  struct aiff_plan *kept = malloc(sizeof *kept);
  if (!kept) kernel_fault(FAULT_UNSUPPORTED, "there is no memory for what the AIFF is to do");
  *kept = *plan;
  tec->started[event] = kept;
  tec->events_pending |= 1u << event;
}

static bool add_bytes(void *context, const struct aiff_area *area) {
  *(uint64_t *)context += area->width * area->count * area->times;
  return true;
}

/* As traffic: how long the unit computes is not known, but it cannot take less than to move what it reads and writes. */
static void record_start(const struct aiff_plan *plan, int event) {
  uint64_t bytes = 0;
  aiff_visit(plan, add_bytes, &bytes);
  record_traffic(event, TRAFFIC_AIFF, bytes, true, false);
}

void __compass_aiff(uint32_t control, uint32_t parameters, uint32_t activations, int event) {
  struct tec *tec = current_tec();
  char message[LONGEST];
  struct aiff_plan plan = {
      .memory = memory, .assumed = may_assume, .message = message, .message_size = sizeof message};
  schedule_point();
  if (!aiff_prepare(&plan, generation, control, parameters, activations))
    kernel_fault(FAULT_UNSUPPORTED, message);
  if (recording) record_start(&plan, event);
  if (check_on && !check_aiff(tec, &plan, event, __builtin_return_address(0)))
    aiff_release(&plan);
  else if (event < 0)
    run(tec, &plan, event);
  else
    start(tec, &plan, event);
}
