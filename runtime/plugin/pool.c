/* Pools: chains that were dispatched wait in one queue, and a thread runs them one after another. */
#include "plugin.h"

/* How a job ended, as POOL_STATUS tells it. */
static uint32_t end_of(aipu_status_t status) {
  switch (status) {
    case AIPU_STATUS_SUCCESS:
      return SIM_AIPU_END_DONE;
    case AIPU_STATUS_ERROR_JOB_EXCEPTION:
    case AIPU_STATUS_ERROR_JOB_TIMEOUT:
      return SIM_AIPU_END_EXCEPTION;
    case AIPU_STATUS_ERROR_DEV_ABNORMAL:
      return SIM_AIPU_END_FAULT;
    default:
      return SIM_AIPU_END_ERROR;
  }
}

/* From here on the end of the chain that ran last is not looked at any more. */
static void forget_tail(struct pool *pool) {
  pool->tail = 0;
  pool->turn++;
}

static void end_pool(struct pool *pool) {
  pool->created = pool->leaving = pool->ends_itself = false;
  forget_tail(pool);
}

static void enqueue(struct sim_aipu *sim, const struct job *job) {
  struct pool *pool = &sim->pools[job->pool];
  forget_tail(pool);
  pool->seen_idle = false;
  pool->unfinished++;
  sim->queue[(sim->first + sim->waiting++) % (MAX_WAITING + POOLS)] = *job;
  pthread_cond_signal(&sim->changed);
}

/* Goes on with the last chain of an idle pool when the driver has made it longer. The driver's memory is its own matter,
 * locks of it included, so it is read without ours; what is found counts if the pool is as it was. */
static void look_at_tail(struct sim_aipu *sim, uint32_t number) {
  struct pool *pool = &sim->pools[number];
  while (pool->tail && !pool->unfinished) {
    uint64_t tail = pool->tail;
    uint32_t turn = pool->turn;
    pthread_mutex_unlock(&sim->lock);
    uint64_t next = chain_continuation(sim, tail);
    pthread_mutex_lock(&sim->lock);
    if (pool->turn != turn) continue;
    if (next) enqueue(sim, &(struct job){.head = next, .pool = number});
    return;
  }
}

/* Tells what is to be told before the job is seen to have ended. */
static void tell(struct sim_aipu *sim, const struct job *job, const struct done *done, const dbg_lite_t *debugger) {
  const struct report *report = &done->report;
  if (report->printed_size && debugger->on_event)
    debugger->on_event(NULL, EV_RT_PRT, report->printed, report->printed_size, debugger->cxt);
  else if (report->printed_size)
    write_all(1, report->printed, report->printed_size);
  if (done->status != AIPU_STATUS_SUCCESS && !sim->ending)
    log_write(sim, SIM_AIPU_LOG_ERROR, "the chain at %#llx failed: %s; the outputs of grid %u are not written",
              (unsigned long long)job->head, fail_text(), done->grid);
}

/* The chain that ran in a pool has ended. */
static void leave_pool(struct sim_aipu *sim, const struct job *job, const struct chain_copy *chain) {
  struct pool *pool = &sim->pools[job->pool];
  pool->unfinished--;
  pool->tail = chain->tail;
  pool->turn++;
  pool->ends_itself |= chain->destroys;
  if (pool->leaving && !pool->unfinished)
    end_pool(pool);
  else
    look_at_tail(sim, job->pool);
}

static void finish(struct sim_aipu *sim, const struct job *job, const struct chain_copy *chain, const struct done *done,
                   bool last) {
  pthread_mutex_lock(&sim->lock);
  sim->pools[job->pool].end |= end_of(done->status);
  if (last) leave_pool(sim, job, chain);
  sim_aipu_event_handler_t handler = sim->ending ? NULL : sim->handler;
  void *context = sim->handler_context;
  pthread_mutex_unlock(&sim->lock);
  if (handler && done->has_grid) handler(AIPU_EV_GRID_END, done->grid, context);
}

static void run_grid(struct sim_aipu *sim, const struct job *job, const struct chain_copy *chain, uint32_t first,
                     uint32_t end) {
  struct done done;
  pthread_mutex_lock(&sim->lock);
  bool profiled = sim->profile.enabled;
  dbg_lite_t debugger = sim->debugger;
  pthread_mutex_unlock(&sim->lock);
  job_run(sim, chain, first, end, profiled, &done);
  tell(sim, job, &done, &debugger);
  if (profiled) {
    pthread_mutex_lock(&sim->lock);
    profile_add(&sim->profile, &done);
    pthread_mutex_unlock(&sim->lock);
  }
  finish(sim, job, chain, &done, end == chain->count);
  report_free(&done.report);
}

/* Nothing runs of a chain that cannot be read. */
static void refuse_chain(struct sim_aipu *sim, const struct job *job, const struct chain_copy *chain) {
  const struct done done = {.status = AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL,
                            .has_grid = chain->count != 0,
                            .grid = chain->count ? chain_grid(chain, 0) : 0};
  tell(sim, job, &done, &(dbg_lite_t){0});
  finish(sim, job, chain, &done, true);
}

/* Grids run one by one: one that faults takes nothing from those before and behind it. */
static void run_chain(struct sim_aipu *sim, const struct job *job) {
  struct chain_copy chain;
  log_write(sim, SIM_AIPU_LOG_INFO, "pool %u: a chain begins at %#llx", job->pool, (unsigned long long)job->head);
  bool complete = chain_read(sim, job, &chain);
  if (!complete) refuse_chain(sim, job, &chain);
  for (uint32_t first = 0, end; complete; first = end) {
    end = chain_grid_end(sim, &chain, first);
    run_grid(sim, job, &chain, first, end);
    if (end == chain.count) break;
  }
  free(chain.blocks);
}

void *pool_serve(void *argument) {
  struct sim_aipu *sim = argument;
  pthread_mutex_lock(&sim->lock);
  for (;;) {
    while (!sim->waiting && !sim->ending) pthread_cond_wait(&sim->changed, &sim->lock);
    if (sim->ending) break;
    struct job job = sim->queue[sim->first];
    sim->first = (sim->first + 1) % (MAX_WAITING + POOLS);
    sim->waiting--;
    pthread_mutex_unlock(&sim->lock);
    run_chain(sim, &job);
    pthread_mutex_lock(&sim->lock);
  }
  pthread_mutex_unlock(&sim->lock);
  return NULL;
}

/* A pool that is there already goes on: its jobs are not touched. */
static void create_pool(struct sim_aipu *sim, uint32_t number) {
  struct pool *pool = &sim->pools[number];
  pool->created = true;
  pool->leaving = pool->ends_itself = false;
  sim->chosen_pool = number;
}

static void destroy_pool(struct pool *pool) {
  if (pool->unfinished)
    pool->leaving = true;
  else
    end_pool(pool);
}

static bool dispatch(struct sim_aipu *sim, uint32_t number) {
  struct pool *pool = &sim->pools[number];
  if (!pool->created || sim->waiting >= MAX_WAITING || !fork_adopt(sim)) return false;
  if (!pool->unfinished) pool->end = 0;
  const uint32_t *registers = sim->registers;
  uint64_t head = (uint64_t)registers[SIM_AIPU_SCHED_ADDR_HI / 4] << 32 | registers[SIM_AIPU_SCHED_ADDR_LO / 4];
  enqueue(sim, &(struct job){head, registers[SIM_AIPU_TCB_NUMBER / 4], number});
  return true;
}

/* X2 names the pool in CREATE alone. */
bool pool_command(struct sim_aipu *sim, uint32_t value) {
  uint32_t what = value & 0xff, number = sim->x3 || what == SIM_AIPU_CREATE ? value >> 16 & (POOLS - 1) : sim->chosen_pool;
  if (!sim->pools[number].seen_idle) look_at_tail(sim, number);
  switch (what) {
    case SIM_AIPU_CREATE:
      return create_pool(sim, number), true;
    case SIM_AIPU_DESTROY:
      return destroy_pool(&sim->pools[number]), true;
    case SIM_AIPU_DISPATCH:
      return dispatch(sim, number);
    default:
      return false;
  }
}

/* A pool that its chain destroys can be given more until the driver has seen that it is idle. */
uint32_t pool_status(struct sim_aipu *sim, uint32_t number) {
  struct pool *pool = &sim->pools[number];
  look_at_tail(sim, number);
  if (pool->unfinished) return pool->end << 16;
  pool->seen_idle = true;
  if (pool->ends_itself) end_pool(pool);
  return SIM_AIPU_POOL_IDLE | pool->end << 16;
}
