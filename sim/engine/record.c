#include "record.h"

#include "fault.h"
#include "futex.h"
#include "schedule.h"

/* The records of a job that there is room for; every TEC has its share. A share's last part is for tasks and their
 * counters: events that find no room before it are only counted. */
#define MAX_RECORDS (5u << 17)
#define RESERVED_SHARE 4
#define MAX_COUNTERS (1u << 16)

bool recording;
static uint64_t job_start;
static struct record *records;
static uint32_t share; /* records of a TEC */

/* What a TEC counts in the task it runs, and what it recorded. */
static struct profile {
  uint64_t *counters;
  const uint32_t *costs; /* estimated cycles of a region, by which it is to be multiplied */
  uint32_t first, regions, used, room;
  uint32_t site; /* where the kernel is, by its own numbers */
  uint32_t lost; /* events that found no room */
  uint32_t recorded;
  uint64_t cycles;
} __attribute__((aligned(128))) profiles[MAX_TECS];

void record_begin_job(bool wanted) {
  recording = wanted && (records || (records = malloc(MAX_RECORDS * sizeof *records)));
  share = MAX_RECORDS / (device.cores * device.tecs_per_core);
  job_start = now();
  for (uint32_t i = 0; i < MAX_TECS; i++) profiles[i].recorded = 0;
}

uint32_t record_count(void) {
  uint32_t count = 0;
  for (uint32_t i = 0; recording && i < MAX_TECS; i++) count += profiles[i].recorded;
  return count;
}

bool send_records(int socket) {
  for (uint32_t i = 0; recording && i < MAX_TECS; i++)
    if (!send_bytes(socket, &records[i * share], profiles[i].recorded * sizeof *records)) return false;
  return true;
}

static void append(const struct tec *tec, enum record_kind kind, uint32_t id, uint64_t amount) {
  struct profile *profile = &profiles[tec->id];
  if (profile->recorded >= share) return;
  uint64_t time = profile->used ? profile->cycles : now() - job_start;
  records[tec->id * share + profile->recorded++] = (struct record){time, amount, kind, tec->id, id, profile->site};
}

void record_event(enum record_kind kind, uint32_t id, uint64_t amount) {
  struct tec *tec = current_tec();
  struct profile *profile = &profiles[tec->id];
  if (profile->recorded < share - share / RESERVED_SHARE)
    append(tec, kind, id, amount);
  else
    profile->lost++;
}

void record_begin_task(struct tec *tec) {
  struct profile *profile = &profiles[tec->id];
  profile->used = profile->regions = profile->site = profile->lost = 0;
  profile->cycles = 0;
  if (recording) append(tec, RECORD_TASK_BEGIN, tec->task.group_id, tec->task.local_id);
}

static uint64_t work_done(const struct profile *profile) {
  uint64_t cycles = 0;
/* As vectors, counters that were just stored one by one would have to wait for those stores. */
#pragma clang loop vectorize(disable)
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

uint64_t *__compass_profile_enter(const uint32_t *costs, uint32_t first, uint32_t regions, uint32_t bytes) {
  struct profile *profile = &profiles[current_tec()->id];
  uint32_t counters = bytes / sizeof *profile->counters;
  if (counters > MAX_COUNTERS || regions > counters) kernel_fault(FAULT_UNSUPPORTED, "the kernel counts too much");
  if (counters > profile->room) {
    uint64_t *more = regrow(profile->counters, 0, counters * sizeof *more);
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

static uint64_t bytes_of(const struct dma_request *r) {
  switch (r->mode) {
    case DMA_DIRECT:
      return r->size == r->width ? r->size : r->width ? r->size - r->size % r->width : 0;
    case DMA_TRANSPOSE:
      return (uint64_t)r->width * r->count * r->item;
    case DMA_UPSAMPLE:
      return (uint64_t)r->width * r->count * r->w_scale * r->h_scale;
    default:
      return r->size;
  }
}

void record_traffic(int event, uint32_t mode, uint64_t bytes, bool reads, bool writes) {
  uint32_t channel = event < 0 ? NO_EVENT : (uint32_t)event % EVENTS;
  record_event(RECORD_TRANSFER, channel | mode << 8 | (uint32_t)reads << 16 | (uint32_t)writes << 17, bytes);
}

void record_transfer(const struct dma_request *r) {
  if (r->mode > DMA_MEMSET) return;
  bool reads = r->mode != DMA_MEMSET && is_external(r->src);
  record_traffic(r->event, r->mode, bytes_of(r), reads, is_external(r->dst));
}
