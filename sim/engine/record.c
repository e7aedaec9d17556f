#include "record.h"

#include "fault.h"
#include "futex.h"
#include "schedule.h"

/* Events beyond the limit of a job are only counted; the counters of its tasks have room of their own. */
#define MAX_EVENTS (1u << 20)
#define MAX_RECORDS (MAX_EVENTS + (1u << 18))
#define MAX_COUNTERS (1u << 16)

bool recording;
static uint64_t job_start;
static struct record *records;
static _Atomic uint32_t recorded, events;

/* What a TEC counts in the task it runs. */
static struct profile {
  uint64_t *counters;
  const uint32_t *costs; /* estimated cycles of a region, by which it is to be multiplied */
  uint32_t first, regions, used, room;
  uint32_t site; /* where the kernel is, by its own numbers */
  uint32_t lost; /* events that found no room */
  uint64_t cycles;
} profiles[MAX_TECS];

void record_begin_job(bool wanted) {
  recording = wanted && (records || (records = malloc(MAX_RECORDS * sizeof *records)));
  job_start = now();
  atomic_store(&recorded, 0);
  atomic_store(&events, 0);
}

const struct record *records_of_job(uint32_t *count) {
  uint32_t all = atomic_load(&recorded);
  *count = recording ? all < MAX_RECORDS ? all : MAX_RECORDS : 0;
  return records;
}

static void append(const struct tec *tec, enum record_kind kind, uint32_t id, uint64_t amount) {
  const struct profile *profile = &profiles[tec->id];
  uint32_t at = atomic_fetch_add(&recorded, 1);
  if (at < MAX_RECORDS)
    records[at] = (struct record){now() - job_start, profile->cycles, amount, kind, tec->id, id, profile->site};
}

void record_event(enum record_kind kind, uint32_t id, uint64_t amount) {
  struct tec *tec = current_tec();
  if (atomic_fetch_add(&events, 1) < MAX_EVENTS)
    append(tec, kind, id, amount);
  else
    profiles[tec->id].lost++;
}

void record_begin_task(struct tec *tec) {
  struct profile *profile = &profiles[tec->id];
  profile->used = profile->regions = profile->site = profile->lost = 0;
  profile->cycles = 0;
  if (recording) append(tec, RECORD_TASK_BEGIN, tec->task.group_id, tec->task.local_id);
}

static uint64_t work_done(const struct profile *profile) {
  uint64_t cycles = 0;
  for (uint32_t i = 0; i < profile->regions; i++) cycles += profile->counters[i] * profile->costs[i];
  return cycles;
}

void record_end_task(struct tec *tec) {
  struct profile *profile = &profiles[tec->id];
  if (!recording) return;
  profile->cycles = work_done(profile);
  for (uint32_t i = 0; i < profile->used; i++)
    if (profile->counters[i]) append(tec, RECORD_COUNT, profile->first + i, profile->counters[i]);
  append(tec, RECORD_TASK_END, profile->lost, 0);
}

uint64_t *__compass_profile_enter(const uint32_t *costs, uint32_t first, uint32_t regions, uint32_t counters) {
  struct profile *profile = &profiles[current_tec()->id];
  if (counters > MAX_COUNTERS || regions > counters) kernel_fault(FAULT_UNSUPPORTED, "the kernel counts too much");
  if (counters > profile->room) {
    uint64_t *more = realloc(profile->counters, counters * sizeof *more);
    if (!more) kernel_fault(FAULT_UNSUPPORTED, "there is no memory for the profile's counters");
    profile->counters = more;
    profile->room = counters;
  }
  memset(profile->counters, 0, counters * sizeof *profile->counters);
  profile->costs = costs;
  profile->first = first;
  profile->regions = regions;
  profile->used = counters;
  return profile->counters;
}

void __compass_profile_point(const uint64_t *counters, uint32_t site) {
  struct profile *profile = &profiles[current_tec()->id];
  (void)counters; /* those of the profile: given so that the compiler has them in memory */
  if (!recording) return;
  profile->cycles = work_done(profile);
  profile->site = site;
}

void __compass_tick(uint32_t id, int begin) {
  schedule_point();
  record(begin ? RECORD_SECTION_BEGIN : RECORD_SECTION_END, id);
}

/* Device memory is what lies outside of the engine's own range: the rest is on the TEC or its core. */
static bool is_external(uint32_t address) { return address < ENGINE_LOW || address >= ENGINE_HIGH; }

void record_transfer(const struct dma_request *r) {
  const uint64_t bytes[] = {
      [DMA_DIRECT] = r->width ? (uint64_t)r->size / r->width * r->width : 0,
      [DMA_TRANSPOSE] = (uint64_t)r->width * r->count * r->item,
      [DMA_UPSAMPLE] = (uint64_t)r->width * r->count * r->w_scale * r->h_scale,
      [DMA_MEMSET] = r->size,
  };
  if (r->mode >= sizeof bytes / sizeof *bytes) return;
  uint32_t channel = r->event < 0 ? NO_EVENT : (uint32_t)r->event % EVENTS;
  bool reads = r->mode != DMA_MEMSET && is_external(r->src);
  record_event(RECORD_TRANSFER,
               channel | r->mode << 8 | (uint32_t)reads << 16 | (uint32_t)is_external(r->dst) << 17, bytes[r->mode]);
}
