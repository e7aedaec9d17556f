/* What a job did, recorded for profilers, and what kernels compiled for profiling call. */
#ifndef ENGINE_RECORD_H
#define ENGINE_RECORD_H

#include "tec.h"

/* Whether the job that runs is recorded. */
extern bool recording;

/* Before a job: forgets what was recorded. */
void record_begin_job(bool wanted);

/* How many records the job has, and sending them: TEC after TEC, those of a TEC in the order in which they were made. */
uint32_t record_count(void);
bool send_records(int socket);

/* In a TEC, around its task. */
void record_begin_task(struct tec *tec);
void record_end_task(struct tec *tec);

void record_event(enum record_kind kind, uint32_t id, uint64_t amount);
void record_traffic(int event, uint32_t mode, uint64_t bytes, bool reads, bool writes);
void record_transfer(const struct dma_request *request);
static inline void record(enum record_kind kind, uint32_t id) {
  if (recording) record_event(kind, id, 0);
}

/* The exported functions; sim/include/compass/profile.h says what a kernel does with the last two. */
void __compass_tick(uint32_t id, int begin);
uint64_t *__compass_profile_enter(const uint32_t *costs, uint32_t first, uint32_t regions, uint32_t bytes);
void __compass_profile_point(const uint64_t *counters, uint32_t site);

#endif
