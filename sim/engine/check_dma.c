#include "check_dma.h"

#include "check_uninit.h"
#include "events.h"

/* Of each TEC: where its transfers were started, and which of them a barrier ended instead of a wait. */
static struct transfers {
  uint64_t pc[EVENTS + 1]; /* the last item is that of synchronous transfers */
  uint32_t ended_by_barrier;
  uint32_t started; /* bit e: event e had a transfer */
} transfers[MAX_TECS];

/* The memory of a transfer: rows of `width` bytes, `count` of them, `stride` apart; `times` such groups `step` apart.
 */
struct rows {
  uint64_t first, stride, step;
  uint32_t width, count, times, item;
};

static uint32_t whole_rows(const struct dma_request *r) { return r->width ? r->size / r->width : 0; }

static struct rows source(const struct dma_request *r) {
  switch (r->mode) {
    case DMA_DIRECT:
      return (struct rows){r->src, r->src_stride, 0, r->width, whole_rows(r), 1, 0};
    case DMA_TRANSPOSE:
      return (struct rows){r->src, (uint64_t)r->src_stride * r->item, 0, r->width * r->item, r->count, 1, r->item};
    case DMA_UPSAMPLE:
      return (struct rows){r->src, r->src_stride, 0, r->width, r->h_scale && r->w_scale ? r->count : 0, 1, 0};
  }
  return (struct rows){0};
}

static struct rows destination(const struct dma_request *r) {
  switch (r->mode) {
    case DMA_DIRECT:
      return (struct rows){r->dst, r->dst_stride, 0, r->width, whole_rows(r), 1, 0};
    case DMA_TRANSPOSE:
      return (struct rows){r->dst, (uint64_t)r->dst_stride * r->item, 0, r->count * r->item, r->width, 1, r->item};
    case DMA_UPSAMPLE:
      return (struct rows){r->dst, r->dst_stride, r->row_stride, r->width, r->count * r->w_scale, r->h_scale, 0};
    case DMA_MEMSET:
      return (struct rows){r->dst, r->size, 0, r->size, 1, 1, r->item};
  }
  return (struct rows){0};
}

/* Calls `visit` for each row as an access; stops when it is false. */
static bool each_row(struct tec *tec, const struct rows *rows, uint32_t kind, uint64_t pc,
                     bool (*visit)(struct tec *, const struct access *)) {
  struct access access = {.pc = pc, .size = rows->width, .item = rows->item, .kind = kind | ACCESS_DMA};
  for (uint32_t group = 0; group < rows->times; group++)
    for (uint32_t row = 0; row < rows->count; row++) {
      access.address = rows->first + group * rows->step + row * rows->stride;
      if (!visit(tec, &access)) return false;
    }
  return true;
}

/* The first address of `rows`, and the one behind the last. */
static uint64_t end_of(const struct rows *rows) {
  if (!rows->width || !rows->count || !rows->times) return rows->first;
  return rows->first + (rows->times - 1) * rows->step + (rows->count - 1) * rows->stride + rows->width;
}

static bool group_meets(const struct rows *rows, uint64_t first, uint64_t address, uint64_t size) {
  uint64_t end = first + (rows->count - 1) * rows->stride + rows->width;
  if (address + size <= first || address >= end) return false;
  if (rows->stride <= rows->width) return true;
  uint64_t row = address < first ? 0 : (address - first) / rows->stride;
  uint64_t start = first + row * rows->stride;
  return address < start + rows->width || (address + size > start + rows->stride && row + 1 < rows->count);
}

static bool rows_meet(const struct rows *rows, uint64_t address, uint64_t size) {
  if (address + size <= rows->first || address >= end_of(rows)) return false;
  for (uint32_t group = 0; group < rows->times; group++)
    if (group_meets(rows, rows->first + group * rows->step, address, size)) return true;
  return false;
}

/* -------------------------------------------------------------------------------------------------------- in flight */

static uint32_t slot_of(int event) { return event < 0 ? EVENTS : (uint32_t)event % EVENTS; }

static uint64_t place_of(const struct tec *tec, int event) { return transfers[tec->id].pc[slot_of(event)]; }

/* Reports an access that meets memory which something on its way reads or writes; whether it does. */
static bool meets_rows(struct tec *tec, const struct access *access, const struct rows *rows, bool written, int event) {
  if (!written && !(access->kind & ACCESS_WRITE)) return false;
  if (!rows_meet(rows, access->address, access->size)) return false;
  struct check_side there = {place_of(tec, event), tec->id, (written ? ACCESS_WRITE : ACCESS_READ) | ACCESS_DMA};
  access_report(KIND_RACE, tec, access, &there);
  return true;
}

static struct rows rows_of(const struct aiff_area *area) {
  return (struct rows){area->first, area->stride, area->step, (uint32_t)area->width, area->count, area->times, 1};
}

struct meeting {
  struct tec *tec;
  const struct access *access;
  int event;
};

static bool meets_no_area(void *context, const struct aiff_area *area) {
  const struct meeting *at = context;
  struct rows rows = rows_of(area);
  return !meets_rows(at->tec, at->access, &rows, area->writes, at->event);
}

void dma_meets(struct tec *tec, const struct access *access) {
  for (uint32_t bits = tec->events_pending; bits; bits &= bits - 1) {
    int event = __builtin_ctz(bits);
    if (tec->started[event]) {
      aiff_visit(tec->started[event], meets_no_area, &(struct meeting){tec, access, event});
      continue;
    }
    struct rows from = source(&tec->pending[event]), to = destination(&tec->pending[event]);
    if (!meets_rows(tec, access, &to, true, event)) meets_rows(tec, access, &from, false, event);
  }
}

static bool meets_none(struct tec *tec, const struct access *access) {
  if (tec->events_pending) dma_meets(tec, access);
  return true;
}

static bool note_race(struct tec *tec, const struct access *access) {
  access_races(tec, access);
  return true;
}

static bool in_bounds(struct tec *tec, const struct access *access) { return access_in_bounds(tec, access); }

void check_transfer(struct tec *tec, const struct dma_request *request) {
  uint64_t pc = place_of(tec, request->event);
  struct rows from = source(request), to = destination(request);
  if (check_wants(CHECK_RACE)) {
    access_settle(tec);
    each_row(tec, &from, ACCESS_READ, pc, note_race);
    each_row(tec, &to, ACCESS_WRITE, pc, note_race);
  }
  if (check_wants(CHECK_UNINIT)) uninit_transfer(tec, request, pc);
  transfer(request);
  access_settle(tec);
}

/* --------------------------------------------------------------------------------------------------------- requests */

static void report(enum check_kind kind, const struct tec *tec, uint64_t pc, int event,
                   const struct check_side *there) {
  struct check_finding finding = {.kind = kind, .times = 1, .event = event, .here = {pc, tec->id, 0}};
  if (there) finding.there = *there;
  check_report(&finding);
}

static bool overlap(const struct rows *from, const struct rows *to) {
  if (from->first >= end_of(to) || to->first >= end_of(from)) return false;
  for (uint32_t row = 0; row < from->count; row++)
    if (rows_meet(to, from->first + row * from->stride, from->width)) return true;
  return false;
}

#define MOST_TRANSPOSED 0xffffffu
static void check_request(struct tec *tec, const struct dma_request *r, uint64_t pc) {
  struct rows from = source(r), to = destination(r);
  struct access access = {r->dst, pc, to.width, to.item, ACCESS_WRITE | ACCESS_DMA};
  if (r->mode == DMA_TRANSPOSE && (from.width > MOST_TRANSPOSED || to.width > MOST_TRANSPOSED))
    access_report(KIND_DMA_IGNORED, tec, &access, NULL);
  if (to.count > 1 && (to.stride < to.width || from.stride < from.width)) {
    if (from.stride < from.width) access = (struct access){r->src, pc, from.width, from.item, ACCESS_READ | ACCESS_DMA};
    access_report(KIND_DMA_STRIDE, tec, &access, NULL);
  } else if (r->mode != DMA_MEMSET && overlap(&from, &to)) {
    access_report(KIND_DMA_OVERLAP, tec, &access, NULL);
  }
}

static bool is_allocated(const struct tec *tec, int event) {
  return event >= 0 && event < EVENTS && tec->event_state >> event & 1;
}

static uint32_t bit_of(int event) { return event < 0 ? 0 : 1u << slot_of(event); }

/* Looks at the event of a transfer, or of a start of the AIFF. */
static void check_event(struct tec *tec, int event, uint64_t pc) {
  if (event < 0 || !check_wants(CHECK_DMA)) return;
  struct check_side there = {place_of(tec, event), tec->id, ACCESS_DMA};
  if (!is_allocated(tec, event))
    report(KIND_EVENT_NOT_ALLOCATED, tec, pc, event, NULL);
  else if (tec->events_pending & bit_of(event))
    report(KIND_EVENT_BUSY, tec, pc, event, &there);
}

static void note_start(struct tec *tec, int event, uint64_t pc) {
  transfers[tec->id].pc[slot_of(event)] = pc;
  transfers[tec->id].started |= bit_of(event);
}

bool check_dma(struct tec *tec, const struct dma_request *request, const void *caller) {
  uint64_t pc = check_pc(caller);
  struct rows from = source(request), to = destination(request);
  access_settle(tec);
  check_event(tec, request->event, pc);
  if (check_wants(CHECK_DMA)) check_request(tec, request, pc);
  if (check_wants(CHECK_UNINIT)) uninit_check_request(tec, request, pc);
  if (!each_row(tec, &from, ACCESS_READ, pc, in_bounds) || !each_row(tec, &to, ACCESS_WRITE, pc, in_bounds))
    return false;
  finish_events(tec, bit_of(request->event)); /* the transfer that has the event now is done before this one begins */
  if (check_wants(CHECK_RACE)) {
    each_row(tec, &from, ACCESS_READ, pc, meets_none);
    each_row(tec, &to, ACCESS_WRITE, pc, meets_none);
  }
  note_start(tec, request->event, pc);
  return true;
}

/* --------------------------------------------------------------------------------------------------------------- AIFF */

struct visit {
  struct tec *tec;
  uint64_t pc;
  bool (*visit)(struct tec *, const struct access *);
};

static bool visit_area(void *context, const struct aiff_area *area) {
  const struct visit *at = context;
  struct rows rows = rows_of(area);
  return each_row(at->tec, &rows, area->writes ? ACCESS_WRITE : ACCESS_READ, at->pc, at->visit);
}

bool check_aiff(struct tec *tec, const struct aiff_plan *plan, int event, const void *caller) {
  struct visit at = {tec, check_pc(caller), in_bounds};
  access_settle(tec);
  check_event(tec, event, at.pc);
  if (!aiff_visit(plan, visit_area, &at)) return false;
  finish_events(tec, bit_of(event));
  at.visit = meets_none;
  if (check_wants(CHECK_RACE)) aiff_visit(plan, visit_area, &at);
  note_start(tec, event, at.pc);
  return true;
}

static bool note_written(void *context, const struct aiff_area *area) {
  (void)context;
  for (uint64_t group = 0; area->writes && group < area->times; group++)
    for (uint64_t row = 0; row < area->count; row++)
      uninit_written(area->first + group * area->step + row * area->stride, area->width);
  return true;
}

void check_aiff_runs(struct tec *tec, const struct aiff_plan *plan, int event) {
  struct visit at = {tec, place_of(tec, event), note_race};
  access_settle(tec);
  if (check_wants(CHECK_RACE)) aiff_visit(plan, visit_area, &at);
  if (check_wants(CHECK_UNINIT)) aiff_visit(plan, note_written, NULL);
}

/* ----------------------------------------------------------------------------------------------------------- events */

/* Where the kernel waits, and whether any TEC had a transfer to wait for there: one that has no work waits for nothing,
 * but a wait that never meets a transfer is for the wrong event. */
#define MAX_WAITS 256u
static struct wait {
  uint64_t pc;
  uint32_t tec;
  int event;
  bool met;
} waits[MAX_WAITS];
static uint32_t wait_count;

static void note_wait(const struct tec *tec, uint64_t pc, int event) {
  uint32_t at = 0;
  while (at < wait_count && (waits[at].pc != pc || waits[at].event != event)) at++;
  if (at == MAX_WAITS) return;
  if (at == wait_count) waits[wait_count++] = (struct wait){pc, tec->id, event, false};
  waits[at].met |= transfers[tec->id].started >> event & 1;
}

void check_alloc_event(struct tec *tec, int event, const void *caller) {
  if (event < EVENTS)
    transfers[tec->id].started &= ~(1u << event);
  else if (check_wants(CHECK_DMA))
    report(KIND_NO_EVENT_FREE, tec, check_pc(caller), -1, NULL);
}

void check_wait_events(struct tec *tec, uint32_t bits, bool frees, const void *caller) {
  access_settle(tec);
  if (!check_wants(CHECK_DMA)) return;
  for (; bits; bits &= bits - 1) {
    int event = __builtin_ctz(bits);
    if (is_allocated(tec, event) && !frees)
      note_wait(tec, check_pc(caller), event);
    else if (!is_allocated(tec, event) && (!frees || event >= EVENTS))
      report(KIND_EVENT_NOT_ALLOCATED, tec, check_pc(caller), event, NULL);
  }
}

void dma_begin_job(void) { wait_count = 0; }

void dma_end_job(void) {
  for (uint32_t i = 0; check_wants(CHECK_DMA) && i < wait_count; i++)
    if (!waits[i].met) report(KIND_EVENT_NEVER_STARTED, &tecs[waits[i].tec], waits[i].pc, waits[i].event, NULL);
}

void dma_begin_task(struct tec *tec) { transfers[tec->id] = (struct transfers){.started = 0}; }

void dma_at_barrier(struct tec *tec) { transfers[tec->id].ended_by_barrier = tec->events_pending; }

void dma_end_task(struct tec *tec) {
  struct transfers *mine = &transfers[tec->id];
  uint32_t left = mine->ended_by_barrier | tec->events_pending;
  for (; check_wants(CHECK_DMA) && left; left &= left - 1)
    report(KIND_EVENT_NOT_WAITED, tec, mine->pc[__builtin_ctz(left)], __builtin_ctz(left), NULL);
}
