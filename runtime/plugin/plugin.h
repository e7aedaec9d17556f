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
  bool leaving;        /* is destroyed when its last job has ended */
  bool ends_itself;    /* is destroyed when the driver sees that it is idle */
  uint32_t unfinished; /* chains that wait or run */
  uint32_t end;        /* in which ways its jobs ended: bits */
  uint64_t tail;       /* X2: the last block of the chain that ran last, which may yet be linked to another; 0: none */
  bool seen_idle;      /* the driver was told that it is idle, and may have freed the chain since */
  uint32_t turn;       /* counts chains and destructions: what was found at a tail is for the turn it was looked at */
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

/* Every `.text` that a job runs, one behind the other. */
struct code {
  uint8_t *bytes;
  size_t size, room;
  uint64_t last; /* where the last one starts in the driver's memory */
};

struct sim_aipu {
  struct sim_aipu *next; /* of all */
  bool orphaned;         /* the process has forked: its thread and worker are the parent's */
  struct shape shape;
  uint32_t clusters; /* jobs run on one at a time */
  bool x3;
  mem_interface_t memory;
  uint64_t limit; /* nanoseconds that a chain may take */
  struct device device;
  struct code code, next_code; /* of the jobs that the worker has run; of the job that is about to run */
  struct log log;
  pthread_t thread;

  pthread_mutex_t lock;   /* of all below */
  pthread_cond_t changed; /* there is a job, or `ending` */
  _Atomic bool ending;
  uint32_t registers[REGISTER_BYTES / 4];
  uint32_t chosen_pool; /* that of the last CREATE */
  struct pool pools[POOLS];
  struct job queue[MAX_WAITING + POOLS]; /* what is found at the end of a pool's chain always has a place */
  uint32_t first, waiting;
  dbg_lite_t debugger;
  sim_aipu_event_handler_t handler;
  void *handler_context;
  struct profile profile;
};

/* A chain as it is in the driver's memory. A grid of it is one job: what its blocks name is theirs alone. */
struct chain_copy {
  uint8_t *blocks; /* BLOCK bytes each */
  uint32_t count, room;
  uint64_t tail; /* address of the last block; 0 when it was not reached */
  bool destroys; /* its end destroys the pool */
};

/* What a grid did: its status and the worker's report. */
struct done {
  aipu_status_t status;
  bool has_grid;
  uint16_t grid;
  struct report report;
};

#define BLOCK 128u

/* Where fields of task control blocks are, in bytes, and what their flags are made of. */
enum { FLAG = 0, NEXT = 4, SPC = 12, GRID_ID = 22, PP = 56, X2_ASID = 48, X3_ASID = 88 };
#define TYPE(flag) ((flag) & 0xfu)
#define GRID_END 0x80u
#define END_DESTROYS 0x100u
static inline uint32_t get32(const uint8_t *block, uint32_t offset) {
  uint32_t value;
  memcpy(&value, block + offset, sizeof value);
  return value;
}

/* Whether the driver's memory has `size` bytes at an address; else a failure says that it has not. */
bool read_memory(struct sim_aipu *sim, uint64_t address, void *to, size_t size);

/* Reads a chain; false when it cannot be. What the copy has is the caller's to free in either case. */
bool chain_read(struct sim_aipu *sim, const struct job *job, struct chain_copy *chain);
/* The number of the grid that a block belongs to. */
uint16_t chain_grid(const struct chain_copy *chain, uint32_t block);
/* The first block behind the grid that begins at block `first`. */
uint32_t chain_grid_end(const struct sim_aipu *sim, const struct chain_copy *chain, uint32_t first);
/* Where an X2 chain that ends with the block `tail` goes on; 0: nowhere yet. */
uint64_t chain_continuation(struct sim_aipu *sim, uint64_t tail);

/* What a job runs is put together, by `begin` and an `add` for the entry record of each task, and admitted: a worker that
 * has run anything else is ended, and its memory emptied. False with a failure. */
void code_begin(struct sim_aipu *sim);
bool code_add(struct sim_aipu *sim, uint64_t entry);
bool code_admit(struct sim_aipu *sim);

/* Runs the grid of the blocks `first` to `end` on the driver's memory. The report is the caller's to free. */
void job_run(struct sim_aipu *sim, const struct chain_copy *chain, uint32_t first, uint32_t end, bool record,
             struct done *done);

/* The thread of the jobs: runs chains until the simulator ends. */
void *pool_serve(void *sim);
/* Does the command written to SCHED_CTRL; false when it cannot be done now. Under the lock. */
bool pool_command(struct sim_aipu *sim, uint32_t value);
/* What POOL_STATUS says. Under the lock, which it may let go for a moment. */
uint32_t pool_status(struct sim_aipu *sim, uint32_t number);

/* Keeps a simulator usable in forked children, until it is forgotten. */
void fork_watch(struct sim_aipu *sim);
void fork_forget(struct sim_aipu *sim);
/* In a forked child: makes what runs jobs; false when it cannot. Under the lock. */
bool fork_adopt(struct sim_aipu *sim);

__attribute__((format(printf, 3, 4))) void log_write(struct sim_aipu *sim, int level, const char *format, ...);
void log_close(struct sim_aipu *sim);

void profile_add(struct profile *profile, const struct done *done);
/* Writes to the report what came since it was written last; false when it cannot. */
bool profile_write(struct profile *profile);

#endif
