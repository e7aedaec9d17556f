/* A simulator as the driver has created it: registers, pools, and a thread that runs the jobs one after another. */
#ifndef PLUGIN_PLUGIN_H
#define PLUGIN_PLUGIN_H

#include "device.h"
#include "sim_aipu.h"

#define POOLS 8u
#define MAX_WAITING 16u
#define REGISTER_BYTES 0x1000u

struct pool {
  bool created;
  uint32_t unfinished; /* jobs that wait or run */
  uint32_t end;        /* how the last one ended */
};

/* A dispatched chain; `count` is that of the blocks on X3. */
struct job {
  uint64_t head;
  uint32_t count, pool;
};

struct log {
  char folder[SIM_AIPU_PATH_MAX];
  int level, file; /* file: -1 until something is logged */
  bool verbose;
  pthread_mutex_t lock;
};

/* What ran while profiling was on, as lines of the report that are not written yet. */
struct profile {
  bool enabled, begun; /* begun: the report is this run's */
  char report[SIM_AIPU_PATH_MAX];
  char *lines;
  size_t size, room;
  uint32_t jobs;
};

struct sim_aipu {
  struct shape shape;
  bool x3;
  mem_interface_t memory;
  uint64_t limit; /* nanoseconds that a chain may take */
  struct device device;
  struct log log;
  pthread_t thread;

  pthread_mutex_t lock;   /* of all below */
  pthread_cond_t changed; /* there is a job, or `ending` */
  _Atomic bool ending;
  uint32_t registers[REGISTER_BYTES / 4];
  uint32_t chosen_pool; /* that of the last CREATE */
  struct pool pools[POOLS];
  struct job queue[MAX_WAITING];
  uint32_t first, waiting;
  dbg_lite_t debugger;
  sim_aipu_event_handler_t handler;
  void *handler_context;
  struct profile profile;
};

/* What a job did: its status, the grids of its chain, and the worker's report. */
struct done {
  aipu_status_t status;
  uint16_t *grids;
  uint32_t grid_count;
  uint64_t tail; /* address of the last block */
  bool destroys; /* the chain's end destroys its pool */
  struct report report;
};

/* Runs a chain on the driver's memory. What `done` has is the caller's to free. */
void job_run(struct sim_aipu *sim, const struct job *job, bool record, struct done *done);

/* Where an X2 chain goes on that the driver has lengthened while it ran; 0: nowhere. */
uint64_t job_continuation(struct sim_aipu *sim, const struct done *done);

__attribute__((format(printf, 3, 4))) void log_write(struct sim_aipu *sim, int level, const char *format, ...);
void log_close(struct sim_aipu *sim);

void profile_add(struct profile *profile, const struct done *done);
/* Writes to the report what came since it was written last; false when it cannot. */
bool profile_write(struct profile *profile);

#endif
