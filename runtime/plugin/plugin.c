/* The functions of sim_aipu.h. */
#include "limit.h"
#include "plugin.h"

#ifndef SIM_FAMILY
#error "SIM_FAMILY is to name the family of targets that the library simulates"
#endif
#define IS_X2 (SIM_FAMILY[1] == '2')
#define SHARED_BYTES (IS_X2 ? COMPASS_X2_SHARED_BYTES : COMPASS_X3_SHARED_BYTES)
#define DEFAULT_REPORT "./perf.csv"
#define CLUSTER_BITS 0x1f0fu /* of CLUSTER0_CONFIG: present, cores, TECs */

/* The codes that are plain numbers. */
static const struct {
  const char *family;
  int code;
  uint32_t cores, tecs;
} codes[] = {{"X2", SIM_AIPU_X2_1204, 1, 4},      {"X2", SIM_AIPU_X2_1204MP3, 3, 4},   {"X3P", SIM_AIPU_X3P_1304, 1, 4},
             {"X3P", SIM_AIPU_X3P_1304MP2, 2, 4}, {"X3P", SIM_AIPU_X3P_1304MP4, 4, 4}, {"X3S", SIM_AIPU_X3S_1304, 1, 4},
             {"X3S", SIM_AIPU_X3S_1304MP2, 2, 4}, {"X3S", SIM_AIPU_X3S_1304MP4, 4, 4}};

/* Number of clusters that a code stands for. */
static uint32_t clusters_of(int code) { return (uint32_t)code >> 31 ? (uint32_t)code >> 12 & 0xf : 1; }

/* What a cluster of a code has; no cores when it is none of this family. */
static struct shape shape_of(int code) {
  uint32_t bits = (uint32_t)code;
  if (bits >> 31 && !IS_X2 && clusters_of(code)) return (struct shape){bits >> 8 & 0xf, bits & 0xf, SHARED_BYTES};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (codes[i].code == code && strcmp(codes[i].family, SIM_FAMILY) == 0)
      return (struct shape){codes[i].cores, codes[i].tecs, SHARED_BYTES};
  return (struct shape){0};
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

/* On X3 all cores of a cluster are enabled from the beginning. */
static void reset_registers(struct sim_aipu *sim) {
  sim->registers[SIM_AIPU_BUILD_INFO / 4] = 2u << 16;
  for (uint32_t cluster = 0; cluster < sim->clusters; cluster++) {
    uint32_t step = cluster * SIM_AIPU_CLUSTER_STEP, has = 1u << 12 | sim->shape.cores << 8 | sim->shape.tecs;
    sim->registers[(SIM_AIPU_CLUSTER0_CONFIG + step) / 4] = has;
    if (sim->x3) sim->registers[(SIM_AIPU_CLUSTER0_CTRL + step) / 4] = has;
  }
}

static void warn_of_unused(struct sim_aipu *sim, const config_t *config) {
  if (config->plugin_filename[0])
    log_write(sim, SIM_AIPU_LOG_WARNING, "the extension library '%.100s' is not used", config->plugin_filename);
  if (config->max_pkg_num > 0)
    log_write(sim, SIM_AIPU_LOG_WARNING, "instruction packets are not counted: max_pkg_num is not used");
}

static bool start(struct sim_aipu *sim, const config_t *config) {
  sim->shape = shape_of(config->code);
  sim->clusters = clusters_of(config->code);
  if (!sim->shape.cores || !sim->shape.tecs)
    return log_write(sim, SIM_AIPU_LOG_ERROR, "the configuration %#x is no target of " SIM_FAMILY, config->code), false;
  if (!sim->memory.read || !sim->memory.write || !sim->memory.get_info)
    return log_write(sim, SIM_AIPU_LOG_ERROR, "the memory interface has no read, write or get_info"), false;
  warn_of_unused(sim, config);
  const char *wrong;
  double seconds = time_limit(&wrong);
  if (wrong)
    log_write(sim, SIM_AIPU_LOG_WARNING, TIME_LIMIT "='%.40s' is no number of seconds: %g are used", wrong, seconds);
  sim->limit = (uint64_t)(seconds * 1e9);
  sim->device.engine = engine_path();
  if (device_open(&sim->device, &sim->shape) != AIPU_STATUS_SUCCESS)
    return log_write(sim, SIM_AIPU_LOG_ERROR, "%s", fail_text()), false;
  if (pthread_create(&sim->thread, NULL, pool_serve, sim) == 0) return true;
  return log_write(sim, SIM_AIPU_LOG_ERROR, "no thread for jobs"), false;
}

static void release(struct sim_aipu *sim) {
  device_close(&sim->device);
  log_close(sim);
  free(sim->profile.lines);
  free(sim->code.bytes);
  free(sim->next_code.bytes);
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
    fork_watch(sim);
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
  fork_forget(sim);
  pthread_mutex_lock(&sim->lock);
  sim->ending = true;
  pthread_cond_signal(&sim->changed);
  pthread_mutex_unlock(&sim->lock);
  device_shut(&sim->device);
  if (!sim->orphaned) pthread_join(sim->thread, NULL);
  release(sim);
}

/* Where a register's value is made when it is read. Under the lock. */
static uint32_t value_of(struct sim_aipu *sim, uint32_t address) {
  uint32_t pool = (address - SIM_AIPU_POOL_STATUS) / SIM_AIPU_POOL_STEP, all = (1u << sim->clusters) - 1;
  if (address == SIM_AIPU_STATUS) return sim->waiting >= MAX_WAITING ? all << 8 | all : 0;
  if (address < SIM_AIPU_POOL_STATUS || (address - SIM_AIPU_POOL_STATUS) % SIM_AIPU_POOL_STEP || pool >= POOLS)
    return sim->registers[address / 4];
  return pool_status(sim, pool);
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

/* The bits of a register that are as they were made. */
static uint32_t fixed_bits(const struct sim_aipu *sim, uint32_t address) {
  uint32_t in_cluster = (address - SIM_AIPU_CLUSTER0_CONFIG) % SIM_AIPU_CLUSTER_STEP;
  if (address == SIM_AIPU_BUILD_INFO) return ~0u;
  if (address < SIM_AIPU_CLUSTER0_CONFIG ||
      (address - SIM_AIPU_CLUSTER0_CONFIG) / SIM_AIPU_CLUSTER_STEP >= sim->clusters)
    return 0;
  if (in_cluster == 0) return ~0u;
  return sim->x3 && in_cluster == SIM_AIPU_CLUSTER0_CTRL - SIM_AIPU_CLUSTER0_CONFIG ? CLUSTER_BITS : 0;
}

static int write_register(sim_aipu_t *sim, uint32_t address, uint32_t value) {
  if (!is_register(sim, address)) return -1;
  uint32_t fixed = fixed_bits(sim, address), *kept = &sim->registers[address / 4];
  if (fixed == ~0u) return -1;
  pthread_mutex_lock(&sim->lock);
  bool done = address != SIM_AIPU_SCHED_CTRL || pool_command(sim, value);
  if (address != SIM_AIPU_SCHED_CTRL) *kept = (*kept & fixed) | (value & ~fixed);
  pthread_mutex_unlock(&sim->lock);
  if (!done) log_write(sim, SIM_AIPU_LOG_ERROR, "the command %#x cannot be done now", value);
  return done ? (int)sizeof value : -1;
}

static void set_debugger(sim_aipu_t *sim, const dbg_lite_t *debugger) {
  if (!sim) return;
  pthread_mutex_lock(&sim->lock);
  sim->debugger = debugger ? *debugger : (dbg_lite_t){0};
  pthread_mutex_unlock(&sim->lock);
}

static const char *version(void) { return "compassc " COMPASS_VERSION " " SIM_FAMILY; }

static void enable_profiling(sim_aipu_t *sim, bool enable) {
  if (!sim) return;
  pthread_mutex_lock(&sim->lock);
  sim->profile.enabled = enable;
  pthread_mutex_unlock(&sim->lock);
}

static void dump_profiling(sim_aipu_t *sim) {
  if (!sim) return;
  pthread_mutex_lock(&sim->lock);
  bool written = profile_write(&sim->profile);
  pthread_mutex_unlock(&sim->lock);
  if (!written)
    log_write(sim, SIM_AIPU_LOG_ERROR, "the profile '%.200s' cannot be written: %s", sim->profile.report,
              strerror(errno));
}

static void set_event_handler(sim_aipu_t *sim, sim_aipu_event_handler_t handler, void *context) {
  if (!sim) return;
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
