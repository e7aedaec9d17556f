#include "events.h"

#include "accelerator.h"
#include "check_dma.h"
#include "fault.h"
#include "record.h"
#include "schedule.h"

static void carry_out(struct tec *tec, const struct dma_request *request) {
  if (check_on)
    check_transfer(tec, request);
  else
    transfer(request);
}

void finish_events(struct tec *tec, uint32_t bits) {
  for (bits &= tec->events_pending; bits; bits &= bits - 1) {
    uint32_t event = (uint32_t)__builtin_ctz(bits);
    tec->events_pending &= ~(1u << event);
    if (tec->started[event])
      accelerator_finish(tec, event);
    else
      carry_out(tec, &tec->pending[event]);
  }
}

static _Noreturn void refuse(const struct dma_request *request) {
  char message[160];
  exceeds_descriptor(request, message, sizeof message);
  kernel_fault(FAULT_DMA, message);
}

/* One transfer per event can be on its way: a second one waits for the first, as the device does. */
static void start(struct tec *tec, const struct dma_request *request) {
  if (!fits_descriptor(request)) refuse(request);
  uint32_t event = (uint32_t)request->event % EVENTS;
  finish_events(tec, 1u << event);
  tec->pending[event] = *request;
  tec->events_pending |= 1u << event;
}

void __compass_dma(const struct dma_request *request) {
  schedule_point();
  if (recording) record_transfer(request);
  if (check_on && !check_dma(current_tec(), request, __builtin_return_address(0))) return;
  if (request->event < 0)
    carry_out(current_tec(), request);
  else if (request->width != 0)
    start(current_tec(), request);
}

int __compass_looked_at(void) { return looked_at() || recording; }

int *__compass_event_state(void) { return &current_tec()->event_state; }

int __compass_alloc_event(void) {
  int *state = &current_tec()->event_state;
  int event = __builtin_ctz(~(uint32_t)*state | 1u << EVENTS);
  if (event < EVENTS) *state |= 1 << event;
  if (check_on) check_alloc_event(current_tec(), event, __builtin_return_address(0));
  return event;
}

void __compass_wait_events(int bits) {
  schedule_point();
  record(RECORD_WAIT, (uint32_t)bits);
  if (check_on) check_wait_events(current_tec(), (uint32_t)bits, false, __builtin_return_address(0));
  finish_events(current_tec(), (uint32_t)bits);
}

void __compass_free_events(int bits) {
  struct tec *tec = current_tec();
  schedule_point();
  record(RECORD_WAIT, (uint32_t)bits);
  if (check_on) check_wait_events(tec, (uint32_t)bits, true, __builtin_return_address(0));
  finish_events(tec, (uint32_t)bits);
  tec->event_state &= ~bits;
}
