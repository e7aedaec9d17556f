/* Forks. A child has the driver's memory and the registers, but neither the thread of the jobs nor the worker: both are
 * made when it dispatches. What ran or waited at the fork is the parent's. */
#include "plugin.h"

/* All that there are, and the lock of the list. */
static struct sim_aipu *all;
static pthread_mutex_t all_lock;

static void before_fork(void) {
  pthread_mutex_lock(&all_lock);
  for (struct sim_aipu *sim = all; sim; sim = sim->next) {
    pthread_mutex_lock(&sim->lock);
    pthread_mutex_lock(&sim->log.lock);
  }
}

static void after_fork_in_parent(void) {
  for (struct sim_aipu *sim = all; sim; sim = sim->next) {
    pthread_mutex_unlock(&sim->log.lock);
    pthread_mutex_unlock(&sim->lock);
  }
  pthread_mutex_unlock(&all_lock);
}

static void after_fork_in_child(void) {
  for (struct sim_aipu *sim = all; sim; sim = sim->next) {
    sim->lock = sim->log.lock = (pthread_mutex_t){0};
    sim->changed = (pthread_cond_t){0};
    sim->orphaned = true;
    sim->code = sim->next_code = (struct code){0}; /* the thread of the jobs may have been about to change them */
    sim->first = sim->waiting = 0;
    for (uint32_t i = 0; i < POOLS; i++) {
      struct pool *pool = &sim->pools[i];
      if (pool->unfinished) pool->end |= SIM_AIPU_END_FAULT;
      pool->unfinished = 0;
      pool->tail = 0;
      pool->turn++;
    }
  }
  all_lock = (pthread_mutex_t){0};
}

__attribute__((constructor(102))) static void watch_forks(void) {
  __register_atfork(before_fork, after_fork_in_parent, after_fork_in_child, &__dso_handle);
}

void fork_watch(struct sim_aipu *sim) {
  pthread_mutex_lock(&all_lock);
  sim->next = all;
  all = sim;
  pthread_mutex_unlock(&all_lock);
}

void fork_forget(struct sim_aipu *sim) {
  pthread_mutex_lock(&all_lock);
  struct sim_aipu **at = &all;
  while (*at && *at != sim) at = &(*at)->next;
  if (*at) *at = sim->next;
  pthread_mutex_unlock(&all_lock);
}

bool fork_adopt(struct sim_aipu *sim) {
  if (!sim->orphaned) return true;
  if (device_renew(&sim->device) != AIPU_STATUS_SUCCESS) return false;
  if (pthread_create(&sim->thread, NULL, pool_serve, sim) != 0) return false;
  sim->orphaned = false;
  return true;
}
