/* driver LIBRARY AIPU_BIN FOLDER [base=ADDRESS] [clusters=N] [level=N] [blocked=1] [contexts=N] [threads=N] [rounds=N] [STEP ...]
 *
 * Inputs are FOLDER/inputN, outputs are written to FOLDER/outputN. Each step prints a line; `run` is the usual one. The
 * base is that of ASID 0 on X2, clusters are for X3, the level is the log's; blocked: all signals are. The other numbers are for `storm`. */
#include "driver.h"

void *dlopen(const char *, int);
int fflush(void *);
int fork(void);
void *dlsym(void *, const char *);
char *dlerror(void);
int nanosleep(const struct timespec *, struct timespec *);
#define SIG_BLOCK 0
int sigprocmask(int, const unsigned long *mask, unsigned long *before);
unsigned long strtoul(const char *, char **, int);

#define WAIT_MS 20000

static struct session {
  const sim_aipu_api_t *api;
  sim_aipu_t *sim;
  config_t config;
  struct graph graph;
  struct memory memory;
  const char *folder;
  uint32_t clusters;
  uint64_t base; /* of ASID 0 */
  struct storm storm;
} session;

static _Atomic uint32_t grids_ended, last_grid;

aipu_status_t fail(aipu_status_t status, const char *format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  printf("%s\n", text);
  return status;
}

static void on_event(uint32_t event, uint64_t value, void *context) {
  CHECK(event == AIPU_EV_GRID_END && context == &session, "a wrong event");
  last_grid = (uint32_t)value;
  grids_ended++;
}

static void on_debug(tec_interface_t *tec, int event, const void *data, size_t size, void *context) {
  CHECK(event == EV_RT_PRT && context == &session && !tec, "a wrong debug event");
  printf("printed %.*s\n", (int)size, (const char *)data);
}

static void pause_ms(unsigned ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

static void set(uint32_t address, uint32_t value) {
  CHECK(session.api->write_register(session.sim, address, value) > 0, "register %#x cannot be written", address);
}

static uint32_t get(uint32_t address) {
  uint32_t value;
  CHECK(session.api->read_register(session.sim, address, &value) > 0, "register %#x cannot be read", address);
  return value;
}

static void create(void) {
  const mem_interface_t memory = memory_interface(&session.memory);
  session.sim = session.api->create(&session.config, &memory);
  CHECK(session.sim, "no simulator");
  session.api->set_event_handler(session.sim, on_event, &session);
}

static void path_of(char *path, const char *kind, uint32_t number) {
  snprintf(path, 4096, "%s/%s%u", session.folder, kind, number);
}

static void load_inputs(void) {
  struct graph *graph = &session.graph;
  for (uint32_t i = 0; i < graph->input_count; i++) {
    char path[4096];
    void *data;
    uint32_t size;
    path_of(path, "input", i);
    read_all(path, &data, &size);
    CHECK(size >= graph->inputs[i]->size, "input %u is too small", i);
    memcpy(graph->reuse.data + graph->input_section[i] + graph->inputs[i]->offset, data, graph->inputs[i]->size);
    free(data);
  }
}

static void store_outputs(void) {
  struct graph *graph = &session.graph;
  for (uint32_t i = 0; i < graph->output_count; i++) {
    char path[4096];
    path_of(path, "output", i);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    const uint8_t *data = graph->reuse.data + graph->output_section[i] + graph->outputs[i]->offset;
    CHECK(file >= 0 && write(file, data, graph->outputs[i]->size) == (ssize_t)graph->outputs[i]->size, "no output");
    close(file);
  }
}

static void dispatch(uint64_t head) {
  set(SIM_AIPU_SCHED_ADDR_HI, (uint32_t)(head >> 32));
  set(SIM_AIPU_SCHED_ADDR_LO, (uint32_t)head);
  if (session.graph.file.x3) set(SIM_AIPU_TCB_NUMBER, session.graph.block_count);
  set(SIM_AIPU_SCHED_CTRL, SIM_AIPU_CREATE);
  set(SIM_AIPU_POOL_CONFIG, 0);
  set(SIM_AIPU_SCHED_CTRL, SIM_AIPU_DISPATCH);
}

/* Waits as the family's driver does, on X2 for the idle pool and on X3 for the event; returns how the job ended. */
static uint32_t wait(uint32_t grids_before) {
  unsigned waited = 0;
  for (; waited < WAIT_MS; waited++) {
    bool idle = get(SIM_AIPU_POOL_STATUS) & SIM_AIPU_POOL_IDLE;
    if (session.graph.file.x3 ? grids_ended != grids_before : idle) break;
    pause_ms(1);
  }
  CHECK(waited < WAIT_MS, "the job does not end");
  uint32_t status = get(SIM_AIPU_POOL_STATUS);
  CHECK(status & SIM_AIPU_POOL_IDLE, "the job ended, but its pool is busy");
  set(SIM_AIPU_SCHED_CTRL, SIM_AIPU_DESTROY);
  return SIM_AIPU_POOL_END(status);
}

static void run(void) {
  uint32_t before = grids_ended;
  dispatch(session.graph.tcbs.pa);
  printf("end %u", wait(before));
  if (session.graph.file.x3) printf(" grid %u", last_grid);
  printf(" wrong %u\n", session.memory.wrong);
}

static void step_run(void) {
  load_inputs();
  graph_chain(&session.graph, session.graph.tcbs.data);
  run();
  store_outputs();
}

/* Clears outputs' memory, so that a later comparison sees what a later run wrote. */
static void step_clear(void) { memset(session.graph.reuse.data, 0, session.graph.reuse.size); }

/* Gives outputs a content that a job which fails must leave alone. */
static void step_fill(void) { memset(session.graph.reuse.data, 0x55, session.graph.reuse.size); }

static void step_registers(void) {
  uint32_t build = get(SIM_AIPU_BUILD_INFO), cluster = get(SIM_AIPU_CLUSTER0_CONFIG), value;
  uint32_t control = get(SIM_AIPU_CLUSTER0_CTRL), x3 = session.graph.file.x3;
  set(SIM_AIPU_CLUSTER0_CTRL, 5u << 16);
  CHECK(get(SIM_AIPU_CLUSTER0_CTRL) == (5u << 16 | (x3 ? control : 0)), "the partition of a cluster is lost");
  CHECK(control == (x3 ? cluster : 0), "the cluster is not enabled");
  CHECK(session.api->write_register(session.sim, SIM_AIPU_CLUSTER0_CONFIG, 0) < 0, "what is there can be changed");
  for (uint32_t i = 1; i < 16; i++) {
    uint32_t there = i < session.clusters ? cluster : 0, step = i * SIM_AIPU_CLUSTER_STEP;
    CHECK(get(SIM_AIPU_CLUSTER0_CONFIG + step) == there, "cluster %u is not as the target says", i);
    CHECK(get(SIM_AIPU_CLUSTER0_CTRL + step) == there, "cluster %u is not enabled as it should be", i);
  }
  CHECK(session.api->read_register(session.sim, 0x2000, &value) < 0, "a register that is not there can be read");
  CHECK(session.api->write_register(session.sim, 0x6, 1) < 0, "an odd register can be written");
  CHECK(session.api->write_register(session.sim, SIM_AIPU_SCHED_CTRL, SIM_AIPU_DISPATCH) < 0, "there is no pool yet");
  printf("partitions %u pools %u present %u cores %u tecs %u enabled %u version %s\n", (build >> 24 & 15) + 1,
         build >> 16 & 15, cluster >> 12 & 1, cluster >> 8 & 15, cluster & 15, control >> 12 & 1,
         session.api->version());
}

/* No function follows a null pointer. */
static void step_null(void) {
  const sim_aipu_api_t *api = session.api;
  const mem_interface_t memory = memory_interface(&session.memory);
  uint32_t value;
  CHECK(!api->create(NULL, &memory) && !api->create(&session.config, NULL), "a simulator of nothing");
  CHECK(!api->create(&session.config, &(mem_interface_t){0}), "a simulator without memory");
  CHECK(!api->create1(NULL), "another simulator");
  CHECK(api->read_register(NULL, 0, &value) < 0 && api->read_register(session.sim, 0, NULL) < 0, "nothing is read");
  CHECK(api->write_register(NULL, 0, 0) < 0, "nothing is written");
  api->destroy(NULL);
  api->enable_profiling(NULL, true);
  api->dump_profiling(NULL);
  api->set_event_handler(NULL, on_event, NULL);
  api->set_dbg_lite(NULL, NULL);
  api->set_dbg_lite(session.sim, NULL);
}

static void step_printer(void) {
  const dbg_lite_t debugger = {.cxt = &session, .on_event = on_debug};
  session.api->set_dbg_lite(session.sim, &debugger);
}

static void step_profiling(void) { session.api->enable_profiling(session.sim, true); }
static void step_profile(void) { session.api->dump_profiling(session.sim); }

static uint32_t open_files(void) {
  uint32_t count = 0;
  for (int file = 0; file < 256; file++) count += fcntl(file, F_GETFD) >= 0;
  return count;
}

/* Many jobs, with a new simulator now and then; what is left open is counted. */
static void step_many(void) {
  uint32_t before = open_files(), good = 0;
  load_inputs();
  for (int i = 0; i < 400; i++) {
    uint32_t grids = grids_ended;
    graph_chain(&session.graph, session.graph.tcbs.data);
    dispatch(session.graph.tcbs.pa);
    good += wait(grids) == SIM_AIPU_END_DONE;
    if (i % 100) continue;
    session.api->destroy(session.sim);
    create();
  }
  printf("good %u files left %u\n", good, open_files() - before);
  store_outputs();
}

/* A child of the process uses the simulator as if it was its own; another one only ends it. */
static void step_fork(void) {
  step_run();
  for (int i = 0; i < 2; i++) {
    int status = 1;
    fflush(NULL);
    int child = fork();
    if (child == 0) {
      for (int k = 0; i == 0 && k < 3; k++) step_run();
      session.api->destroy(session.sim);
      exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with %d", status);
  }
  step_run();
}

/* Jobs that wait for one another in a pool. */
static void step_queue(void) {
  uint32_t before = grids_ended;
  load_inputs();
  graph_chain(&session.graph, session.graph.tcbs.data);
  for (int i = 0; i < 5; i++) dispatch(session.graph.tcbs.pa);
  while (!(get(SIM_AIPU_POOL_STATUS) & SIM_AIPU_POOL_IDLE)) pause_ms(1);
  for (int waited = 0; grids_ended < before + 5 && waited < WAIT_MS; waited++) pause_ms(1);
  printf("end %u grids %u\n", SIM_AIPU_POOL_END(get(SIM_AIPU_POOL_STATUS)), grids_ended - before);
  store_outputs();
}

/* The driver's process ends in the middle of a job. */
static void step_die(void) {
  load_inputs();
  dispatch(session.graph.tcbs.pa);
  pause_ms(100);
  _exit(get(SIM_AIPU_POOL_STATUS) & SIM_AIPU_POOL_IDLE ? 1 : 0);
}

/* Destroys the simulator in the middle of a job, and makes another. */
static void step_abandon(void) {
  load_inputs();
  graph_chain(&session.graph, session.graph.tcbs.data);
  dispatch(session.graph.tcbs.pa);
  pause_ms(100);
  printf("busy %d\n", !(get(SIM_AIPU_POOL_STATUS) & SIM_AIPU_POOL_IDLE));
  session.api->destroy(session.sim);
  create();
}

/* X2: a second copy of the chain is linked to the first one's end while that runs. */
static void step_lengthen(void) {
  struct graph *graph = &session.graph;
  struct place first = graph->tcbs, second = memory_get(graph->memory, 0, graph->tcbs.size);
  uint32_t before = grids_ended, head = (uint32_t)second.pa;
  load_inputs();
  graph_chain(graph, first.data);
  graph->tcbs = second;
  graph_chain(graph, second.data);
  graph->tcbs = first;
  dispatch(first.pa);
  pause_ms(5);
  memcpy(first.data + (graph->block_count - 1) * BLOCK_BYTES + 4, &head, 4);
  printf("end %u\n", wait(before));
  store_outputs();
}

/* Jobs whose chains are freed as soon as the pool was seen idle: before it is destroyed, or while it is used again. */
static void step_release(void) {
  struct graph *graph = &session.graph;
  for (uint32_t i = 0; i < 4; i++) {
    load_inputs();
    graph->tcbs = memory_get(graph->memory, 0, graph->tcbs.size);
    graph_chain(graph, graph->tcbs.data);
    dispatch(graph->tcbs.pa);
    while (!(get(SIM_AIPU_POOL_STATUS) & SIM_AIPU_POOL_IDLE)) pause_ms(1);
    memory_free(graph->memory, graph->tcbs);
    if (i % 2) set(SIM_AIPU_SCHED_CTRL, SIM_AIPU_DESTROY);
  }
  get(SIM_AIPU_POOL_STATUS);
  store_outputs();
  printf("unknown %u\n", session.memory.unknown);
}

/* Runs with something damaged, and without: the chain, or the head of the code, or what a name stands for. */
static const struct damage {
  const char *name;
  enum { CHAIN, TEXT, PARAMS } where;
  int block; /* of the chain; negative: from its end */
  uint32_t offset, value;
} damages[] = {{"spc outside", CHAIN, -1, 12, 0xbfff0000},
               {"spc elsewhere", CHAIN, -1, 12, 0x1000},
               {"pp outside", CHAIN, -1, 56, 0xb0000000},
               {"type", CHAIN, -1, 0, 7},
               {"no group end", CHAIN, -1, 0, 0},
               {"no tasks", CHAIN, -1, 34, 0},
               {"many tasks", CHAIN, -1, 34, 0xffff},
               {"record", TEXT, 0, 64, 0},
               {"record's way back", TEXT, 0, 72, 0x7fffff},
               {"no parameter text", TEXT, 0, 76, 0},
               {"parameter text", TEXT, 0, 76, 0xfffffff0},
               {"object offset", TEXT, 0, 12, 0xffffffc0},
               {"object size", TEXT, 0, 16, 0x7fffffff},
               {"pointer", PARAMS, 0, 0, 0xbffff000}};

static uint8_t *damaged_place(const struct damage *damage) {
  struct graph *graph = &session.graph;
  uint32_t block = (uint32_t)(damage->block < 0 ? (int)graph->block_count + damage->block : damage->block);
  const struct place *areas[] = {&graph->tcbs, &graph->text, &graph->params};
  return areas[damage->where]->data + (damage->where == CHAIN ? block * BLOCK_BYTES : 0) + damage->offset;
}

static void step_damage(void) {
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    uint32_t kept;
    load_inputs();
    graph_chain(&session.graph, session.graph.tcbs.data);
    memcpy(&kept, damaged_place(&damages[i]), 4);
    memcpy(damaged_place(&damages[i]), &damages[i].value, 4);
    printf("%s: ", damages[i].name);
    run();
    memcpy(damaged_place(&damages[i]), &kept, 4);
  }
}

/* Chains elsewhere: not there, across the end of memory, in a circle. */
static void step_heads(void) {
  uint32_t before;
  const struct place *holder = session.graph.file.x3 ? &session.memory.top : &session.graph.tcbs;
  const uint64_t heads[] = {0xbffff000, 1ull << 40, UINT64_MAX - 4, holder->pa + holder->size - 64};
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
    before = grids_ended;
    dispatch(heads[i]);
    if (session.graph.file.x3)
      while (!(get(SIM_AIPU_POOL_STATUS) & SIM_AIPU_POOL_IDLE)) pause_ms(1);
    grids_ended += session.graph.file.x3;
    printf("head %zu: end %u\n", i, wait(before));
  }
  if (session.graph.file.x3) return;
  graph_chain(&session.graph, session.graph.tcbs.data);
  uint32_t head = (uint32_t)session.graph.tcbs.pa;
  memcpy(session.graph.tcbs.data + (session.graph.block_count - 1) * BLOCK_BYTES + 4, &head, 4);
  before = grids_ended;
  dispatch(session.graph.tcbs.pa);
  printf("circle: end %u\n", wait(before));
}

/* Random bytes in the chain and the head of the code; whatever happens, the job ends. */
static void step_fuzz(void) {
  struct graph *graph = &session.graph;
  uint32_t state = 12345, ends[32] = {0};
  uint8_t head[512];
  memcpy(head, graph->text.data, sizeof head);
  for (int i = 0; i < 300; i++) {
    graph_chain(graph, graph->tcbs.data);
    for (int k = 0; k < 3; k++) {
      state = state * 1664525 + 1013904223;
      uint8_t *place = i % 2 ? graph->text.data + (state >> 8) % 140
                             : graph->tcbs.data + (state >> 8) % (graph->block_count * BLOCK_BYTES);
      *place = (uint8_t)(state >> 3);
    }
    dispatch(graph->tcbs.pa);
    while (!(get(SIM_AIPU_POOL_STATUS) & SIM_AIPU_POOL_IDLE)) pause_ms(1);
    uint32_t end = SIM_AIPU_POOL_END(get(SIM_AIPU_POOL_STATUS));
    CHECK(end < 32, "a job ended in an unknown way");
    ends[end]++;
    set(SIM_AIPU_SCHED_CTRL, SIM_AIPU_DESTROY);
    memcpy(graph->text.data, head, sizeof head);
  }
  printf("fuzz done %u error %u\n", ends[SIM_AIPU_END_DONE], ends[SIM_AIPU_END_ERROR]);
}

/* Another program takes the place of the first one, on the same simulator: FOLDER/other0. */
static void step_other(void) {
  char path[4096];
  path_of(path, "other", 0);
  session.graph = (struct graph){.grid = session.graph.grid};
  graph_load(&session.graph, &session.memory, path, session.base);
}

static void step_storm(void) { storm_run(&session.storm); }

static const struct {
  const char *name;
  void (*take)(void);
} steps[] = {{"run", step_run},           {"clear", step_clear},     {"registers", step_registers},
             {"printer", step_printer},   {"profile", step_profile}, {"profiling", step_profiling},
             {"lengthen", step_lengthen}, {"release", step_release}, {"damage", step_damage},   {"heads", step_heads},
             {"abandon", step_abandon},   {"fuzz", step_fuzz},       {"many", step_many},
             {"queue", step_queue},       {"die", step_die},         {"storm", step_storm},
             {"fill", step_fill},         {"null", step_null},
             {"fork", step_fork},         {"other", step_other}};

static int code_of(const struct file *file) {
  if (!file->x3) return file->cores == 3 ? SIM_AIPU_X2_1204MP3 : SIM_AIPU_X2_1204;
  return SIM_AIPU_X3_CODE(file->tasks, 2, file->cores, (int)session.clusters);
}

/* The number of a leading argument NAME=NUMBER, 0 without one; `*next` moves behind it. */
static uint64_t setting(const char *name, char **arguments, int *next) {
  const char *argument = arguments[*next];
  if (!argument || strncmp(argument, name, strlen(name)) != 0) return 0;
  ++*next;
  return strtoul(argument + strlen(name), NULL, 0);
}

static void take_steps(char **names) {
  for (; *names; names++) {
    size_t at = 0;
    while (at < sizeof steps / sizeof *steps && strcmp(steps[at].name, *names)) at++;
    CHECK(at < sizeof steps / sizeof *steps, "there is no step %s", *names);
    steps[at].take();
  }
}

int main(int count, char **arguments) {
  CHECK(count >= 4, "usage: driver LIBRARY AIPU_BIN FOLDER [NAME=NUMBER ...] [STEP ...]");
  void *library = dlopen(arguments[1], 2);
  CHECK(library, "%s", dlerror());
  const sim_aipu_api_t *(*init)(void) = (const sim_aipu_api_t *(*)(void))dlsym(library, "sim_aipu_api_init");
  CHECK(init && (session.api = init()), "no table");
  session.folder = arguments[3];
  session.graph.grid = 7;
  int next = 4;
  session.base = setting("base=", arguments, &next);
  graph_load(&session.graph, &session.memory, arguments[2], session.base);
  session.clusters = (uint32_t)setting("clusters=", arguments, &next);
  session.clusters += !session.clusters;
  session.config = (config_t){.code = code_of(&session.graph.file), .max_pkg_num = -1, .gm_size = 8u << 20};
  session.config.log.level = (int)setting("level=", arguments, &next);
  snprintf(session.config.log.filepath, sizeof session.config.log.filepath, "%s", session.folder);
  snprintf(session.config.perf.report_filename, SIM_AIPU_PATH_MAX, "%s/report.csv", session.folder);
  if (setting("blocked=", arguments, &next)) sigprocmask(SIG_BLOCK, (const unsigned long[16]){~0ul}, NULL);
  session.storm = (struct storm){.api = session.api, .config = &session.config, .path = arguments[2]};
  session.storm.contexts = (uint32_t)setting("contexts=", arguments, &next);
  session.storm.threads = (uint32_t)setting("threads=", arguments, &next);
  session.storm.rounds = (uint32_t)setting("rounds=", arguments, &next);
  create();
  take_steps(arguments + next);
  session.api->destroy(session.sim);
  printf("wrong %u\n", session.memory.wrong);
  return 0;
}
