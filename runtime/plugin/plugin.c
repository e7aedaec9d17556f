/* The functions of sim_aipu.h. */
#include "plugin.h"

#ifndef SIM_FAMILY
#error "SIM_FAMILY is to name the family of targets that the library simulates"
#endif
#define IS_X2 (SIM_FAMILY[1] == '2')
#define SHARED_BYTES (IS_X2 ? COMPASS_X2_SHARED_BYTES : COMPASS_X3_SHARED_BYTES)
#define TIME_LIMIT "COMPASS_TIMEOUT"
#define DEFAULT_REPORT "./perf.csv"

/* The codes that are plain numbers. */
static const struct {
  const char *family;
  int code;
  uint32_t cores, tecs;
} codes[] = {{"X2", SIM_AIPU_X2_1204, 1, 4},      {"X2", SIM_AIPU_X2_1204MP3, 3, 4},   {"X3P", SIM_AIPU_X3P_1304, 1, 4},
             {"X3P", SIM_AIPU_X3P_1304MP2, 2, 4}, {"X3P", SIM_AIPU_X3P_1304MP4, 4, 4}, {"X3S", SIM_AIPU_X3S_1304, 1, 4},
             {"X3S", SIM_AIPU_X3S_1304MP2, 2, 4}, {"X3S", SIM_AIPU_X3S_1304MP4, 4, 4}};

/* What a code stands for; no cores when it is none of this family. */
static struct shape shape_of(int code) {
  uint32_t bits = (uint32_t)code, clusters = bits >> 12 & 0xf;
  if (bits >> 31 && !IS_X2 && clusters == 1) return (struct shape){bits >> 8 & 0xf, bits & 0xf, SHARED_BYTES};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (codes[i].code == code && strcmp(codes[i].family, SIM_FAMILY) == 0)
      return (struct shape){codes[i].cores, codes[i].tecs, SHARED_BYTES};
  return (struct shape){0};
}

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

static void show_printed(const struct report *report, const dbg_lite_t *debugger) {
  if (!report->printed_size) return;
  if (debugger->on_event)
    debugger->on_event(NULL, EV_RT_PRT, report->printed, report->printed_size, debugger->cxt);
  else
    write_all(1, report->printed, report->printed_size);
}

/* Runs one chain, and tells what is to be told before the pool is seen idle. */
static void run_one(struct sim_aipu *sim, const struct job *job, struct done *done) {
  pthread_mutex_lock(&sim->lock);
  bool profiled = sim->profile.enabled;
  dbg_lite_t debugger = sim->debugger;
  pthread_mutex_unlock(&sim->lock);
  log_write(sim, SIM_AIPU_LOG_INFO, "pool %u: a chain begins at %#llx", job->pool, (unsigned long long)job->head);
  job_run(sim, job, profiled, done);
  show_printed(&done->report, &debugger);
  if (done->status != AIPU_STATUS_SUCCESS && !sim->ending)
    log_write(sim, SIM_AIPU_LOG_ERROR, "the chain at %#llx failed: %s", (unsigned long long)job->head, fail_text());
  if (profiled) {
    pthread_mutex_lock(&sim->lock);
    profile_add(&sim->profile, done);
    pthread_mutex_unlock(&sim->lock);
  }
}

static void finish(struct sim_aipu *sim, uint32_t number, const struct done *done, bool last) {
  pthread_mutex_lock(&sim->lock);
  struct pool *pool = &sim->pools[number];
  pool->end = end_of(done->status);
  if (last) pool->unfinished--;
  if (last && done->destroys) pool->created = false;
  sim_aipu_event_handler_t handler = sim->ending ? NULL : sim->handler;
  void *context = sim->handler_context;
  pthread_mutex_unlock(&sim->lock);
  for (uint32_t i = 0; handler && i < done->grid_count; i++) handler(AIPU_EV_GRID_END, done->grids[i], context);
}

/* The thread of the jobs. */
static void *serve(void *argument) {
  struct sim_aipu *sim = argument;
  pthread_mutex_lock(&sim->lock);
  for (;;) {
    while (!sim->waiting && !sim->ending) pthread_cond_wait(&sim->changed, &sim->lock);
    if (sim->ending) break;
    struct job job = sim->queue[sim->first];
    sim->first = (sim->first + 1) % MAX_WAITING;
    sim->waiting--;
    pthread_mutex_unlock(&sim->lock);
    for (bool last = false; !last;) {
      struct done done;
      run_one(sim, &job, &done);
      job.head = done.status == AIPU_STATUS_SUCCESS ? job_continuation(sim, &done) : 0;
      last = job.head == 0;
      finish(sim, job.pool, &done, last);
      report_free(&done.report);
      free(done.grids);
    }
    pthread_mutex_lock(&sim->lock);
  }
  pthread_mutex_unlock(&sim->lock);
  return NULL;
}

/* The engine lies beside the library. */
static char *engine_path(void) {
  struct library_place place;
  if (!dladdr(&engine_path, &place)) return NULL;
  const char *slash = strrchr(place.path, '/');
  size_t folder = slash ? (size_t)(slash - place.path) + 1 : 0;
  char *path = malloc(folder + sizeof COMPASS_ENGINE);
  if (!path) return NULL;
  memcpy(path, place.path, folder);
  memcpy(path + folder, COMPASS_ENGINE, sizeof COMPASS_ENGINE);
  return path;
}

static void copy_path(char *to, const char *from) {
  snprintf(to, SIM_AIPU_PATH_MAX, "%.*s", SIM_AIPU_PATH_MAX - 1, from);
}

static void reset_registers(struct sim_aipu *sim) {
  sim->registers[SIM_AIPU_BUILD_INFO / 4] = 2u << 16;
  sim->registers[SIM_AIPU_CLUSTER0_CONFIG / 4] = 1u << 12 | sim->shape.cores << 8 | sim->shape.tecs;
}

static void warn_of_unused(struct sim_aipu *sim, const config_t *config) {
  if (config->plugin_filename[0])
    log_write(sim, SIM_AIPU_LOG_WARNING, "the extension library '%.100s' is not used", config->plugin_filename);
  if (config->max_pkg_num > 0)
    log_write(sim, SIM_AIPU_LOG_WARNING, "instruction packets are not counted: max_pkg_num is not used");
}

/* The switch of the other runtimes; without it a job may take any time, as on the device. */
static uint64_t time_limit(struct sim_aipu *sim) {
  const char *text = getenv(TIME_LIMIT);
  char *end;
  double seconds = text && *text ? strtod(text, &end) : 0;
  if (!text || !*text) return UINT64_MAX;
  if (!*end && seconds > 0 && seconds < 1e9) return (uint64_t)(seconds * 1e9);
  log_write(sim, SIM_AIPU_LOG_WARNING, TIME_LIMIT "='%.40s' is no number of seconds and is not used", text);
  return UINT64_MAX;
}

static bool start(struct sim_aipu *sim, const config_t *config) {
  sim->shape = shape_of(config->code);
  if (!sim->shape.cores || !sim->shape.tecs)
    return log_write(sim, SIM_AIPU_LOG_ERROR, "the configuration %#x is no target of " SIM_FAMILY, config->code), false;
  if (!sim->memory.read || !sim->memory.write || !sim->memory.get_info)
    return log_write(sim, SIM_AIPU_LOG_ERROR, "the memory interface has no read, write or get_info"), false;
  warn_of_unused(sim, config);
  sim->limit = time_limit(sim);
  sim->device.engine = engine_path();
  if (device_open(&sim->device, &sim->shape) != AIPU_STATUS_SUCCESS)
    return log_write(sim, SIM_AIPU_LOG_ERROR, "%s", fail_text()), false;
  if (pthread_create(&sim->thread, NULL, serve, sim) == 0) return true;
  return log_write(sim, SIM_AIPU_LOG_ERROR, "no thread for jobs"), false;
}

static void release(struct sim_aipu *sim) {
  device_close(&sim->device);
  log_close(sim);
  free(sim->profile.lines);
  free(sim);
}

static sim_aipu_t *create(const config_t *config, const mem_interface_t *memory) {
  struct sim_aipu *sim = config && memory ? calloc(1, sizeof *sim) : NULL;
  if (!sim) return NULL;
  sim->x3 = !IS_X2;
  sim->memory = *memory;
  sim->log.file = -1;
  sim->log.level = config->log.level;
  sim->log.verbose = config->log.verbose;
  copy_path(sim->log.folder, config->log.filepath);
  sim->profile.enabled = config->perf.mode != SIM_AIPU_PERF_NONE;
  copy_path(sim->profile.report, config->perf.report_filename[0] ? config->perf.report_filename : DEFAULT_REPORT);
  if (start(sim, config)) {
    reset_registers(sim);
    return sim;
  }
  release(sim);
  return NULL;
}

static sim_aipu_t *create_from(void *what) {
  static const char text[] = "compass simulator: error: create1 is not supported, create is\n";
  (void)what;
  write_all(2, text, sizeof text - 1);
  return NULL;
}

/* A job that runs is ended: its kernel may never end. */
static void destroy(sim_aipu_t *sim) {
  if (!sim) return;
  pthread_mutex_lock(&sim->lock);
  sim->ending = true;
  pthread_cond_signal(&sim->changed);
  pthread_mutex_unlock(&sim->lock);
  device_shut(&sim->device);
  pthread_join(sim->thread, NULL);
  release(sim);
}

/* A pool that is there already goes on: its jobs are not touched. */
static bool create_pool(struct sim_aipu *sim, uint32_t number) {
  struct pool *pool = &sim->pools[number];
  if (!pool->unfinished) pool->end = 0;
  pool->created = true;
  sim->chosen_pool = number;
  return true;
}

static bool destroy_pool(struct sim_aipu *sim, uint32_t number) {
  struct pool *pool = &sim->pools[number];
  if (pool->unfinished) return false;
  pool->created = false;
  return true;
}

static bool dispatch(struct sim_aipu *sim, uint32_t number) {
  if (!sim->pools[number].created || sim->waiting == MAX_WAITING) return false;
  uint64_t head =
      (uint64_t)sim->registers[SIM_AIPU_SCHED_ADDR_HI / 4] << 32 | sim->registers[SIM_AIPU_SCHED_ADDR_LO / 4];
  sim->queue[(sim->first + sim->waiting++) % MAX_WAITING] =
      (struct job){head, sim->registers[SIM_AIPU_TCB_NUMBER / 4], number};
  sim->pools[number].unfinished++;
  pthread_cond_signal(&sim->changed);
  return true;
}

/* Does the command written to SCHED_CTRL. X2 names the pool in CREATE alone. */
static bool command(struct sim_aipu *sim, uint32_t value) {
  uint32_t number = value >> 16 & (POOLS - 1), what = value & 0xff;
  uint32_t named = sim->x3 ? number : sim->chosen_pool;
  switch (what) {
    case SIM_AIPU_CREATE:
      return create_pool(sim, number);
    case SIM_AIPU_DESTROY:
      return destroy_pool(sim, named);
    case SIM_AIPU_DISPATCH:
      return dispatch(sim, named);
    default:
      return false;
  }
}

/* Where a register's value is made when it is read. */
static uint32_t value_of(const struct sim_aipu *sim, uint32_t address) {
  uint32_t pool = (address - SIM_AIPU_POOL_STATUS) / SIM_AIPU_POOL_STEP;
  if (address == SIM_AIPU_STATUS) return sim->waiting == MAX_WAITING ? 0x101 : 0;
  if (address < SIM_AIPU_POOL_STATUS || (address - SIM_AIPU_POOL_STATUS) % SIM_AIPU_POOL_STEP || pool >= POOLS)
    return sim->registers[address / 4];
  return (sim->pools[pool].unfinished ? 0 : SIM_AIPU_POOL_IDLE) | sim->pools[pool].end << 16;
}

static bool is_register(const struct sim_aipu *sim, uint32_t address) {
  return sim && address < REGISTER_BYTES && address % 4 == 0;
}

static int read_register(sim_aipu_t *sim, uint32_t address, uint32_t *value) {
  if (!is_register(sim, address) || !value) return -1;
  pthread_mutex_lock(&sim->lock);
  *value = value_of(sim, address);
  pthread_mutex_unlock(&sim->lock);
  return sizeof *value;
}

static int write_register(sim_aipu_t *sim, uint32_t address, uint32_t value) {
  if (!is_register(sim, address)) return -1;
  if (address == SIM_AIPU_BUILD_INFO || address == SIM_AIPU_CLUSTER0_CONFIG) return -1;
  pthread_mutex_lock(&sim->lock);
  bool done = address != SIM_AIPU_SCHED_CTRL || command(sim, value);
  if (done && address != SIM_AIPU_SCHED_CTRL) sim->registers[address / 4] = value;
  pthread_mutex_unlock(&sim->lock);
  if (!done) log_write(sim, SIM_AIPU_LOG_ERROR, "the command %#x cannot be done now", value);
  return done ? (int)sizeof value : -1;
}

static void set_debugger(sim_aipu_t *sim, const dbg_lite_t *debugger) {
  pthread_mutex_lock(&sim->lock);
  sim->debugger = debugger ? *debugger : (dbg_lite_t){0};
  pthread_mutex_unlock(&sim->lock);
}

static const char *version(void) { return "compassc " COMPASS_VERSION " " SIM_FAMILY; }

static void enable_profiling(sim_aipu_t *sim, bool enable) {
  pthread_mutex_lock(&sim->lock);
  sim->profile.enabled = enable;
  pthread_mutex_unlock(&sim->lock);
}

static void dump_profiling(sim_aipu_t *sim) {
  pthread_mutex_lock(&sim->lock);
  bool written = profile_write(&sim->profile);
  pthread_mutex_unlock(&sim->lock);
  if (!written)
    log_write(sim, SIM_AIPU_LOG_ERROR, "the profile '%.200s' cannot be written: %s", sim->profile.report,
              strerror(errno));
}

static void set_event_handler(sim_aipu_t *sim, sim_aipu_event_handler_t handler, void *context) {
  pthread_mutex_lock(&sim->lock);
  sim->handler = handler;
  sim->handler_context = context;
  pthread_mutex_unlock(&sim->lock);
}

__attribute__((visibility("default"))) const sim_aipu_api_t *sim_aipu_api_init(void) {
  static const sim_aipu_api_t api = {create,       create_from, destroy,          read_register,  write_register,
                                     set_debugger, version,     enable_profiling, dump_profiling, set_event_handler};
  return &api;
}
