/* Threads that run jobs as the vendor's driver does when several contexts and threads use it.
 *
 * X2: the first job is dispatched to the pool; up to three more are linked to the end of the pool's chain for as long as
 * nobody has seen the pool idle. Who sees it so takes all of them for done, and destroys the pool.
 * X3: each job is dispatched, and has ended when its grid's event came. */
#include "driver.h"

int nanosleep(const struct timespec *, struct timespec *);

#define MOST_JOBS 32
#define MOST_CHAINED 4
#define ELEMENTS 16
#define UNTOUCHED 0x55555555
#define TURNS 20000 /* of waiting, about a millisecond each at most */

struct slot {
  struct graph graph;
  _Atomic bool done;
};

/* A simulator with its memory, and a job for each thread. */
struct context {
  const struct storm *storm;
  sim_aipu_t *sim;
  struct memory memory;
  struct graph loaded;
  struct slot slots[MOST_JOBS];
  pthread_mutex_t lock; /* the driver's: of the registers and all below */
  struct slot *chained[MOST_CHAINED];
  uint32_t chained_count;
  uint32_t linked;     /* jobs that were linked to the pool's chain */
  uint32_t exceptions; /* how often the registers told of faults */
};

struct runner {
  pthread_t thread;
  struct context *context;
  struct slot *slot;
  uint32_t random, faults;
};

static uint32_t draw(struct runner *runner, uint32_t below) {
  runner->random = runner->random * 1664525 + 1013904223;
  return (runner->random >> 8) % below;
}

static void rest(struct runner *runner) {
  uint32_t kind = draw(runner, 4), turns = draw(runner, 20000);
  if (kind == 1)
    for (volatile uint32_t i = 0; i < turns;) i++;
  if (kind >= 2) nanosleep(&(struct timespec){0, (int64_t)draw(runner, kind == 2 ? 200000 : 1000000)}, NULL);
}

static void put(struct context *context, uint32_t address, uint32_t value) {
  CHECK(context->storm->api->write_register(context->sim, address, value) > 0, "register %#x is refused", address);
}

static uint32_t look(struct context *context, uint32_t address) {
  uint32_t value;
  CHECK(context->storm->api->read_register(context->sim, address, &value) > 0, "register %#x cannot be read", address);
  return value;
}

static void dispatch(struct context *context, const struct graph *graph, uint32_t pool) {
  put(context, SIM_AIPU_SCHED_ADDR_HI, (uint32_t)(graph->tcbs.pa >> 32));
  put(context, SIM_AIPU_SCHED_ADDR_LO, (uint32_t)graph->tcbs.pa);
  if (graph->file.x3) put(context, SIM_AIPU_TCB_NUMBER, graph->block_count);
  put(context, SIM_AIPU_SCHED_CTRL, pool << 16 | SIM_AIPU_CREATE);
  put(context, SIM_AIPU_POOL_CONFIG + pool * SIM_AIPU_POOL_STEP, 0);
  put(context, SIM_AIPU_SCHED_CTRL, pool << 16 | SIM_AIPU_DISPATCH);
}

/* False when there is no room now. */
static bool submit_x2(struct context *context, struct slot *slot) {
  if (context->chained_count == MOST_CHAINED) return false;
  if (context->chained_count) {
    struct graph *last = &context->chained[context->chained_count - 1]->graph;
    uint32_t *next = (uint32_t *)(void *)(last->tcbs.data + (last->block_count - 1) * BLOCK_BYTES + 4);
    __atomic_store_n(next, (uint32_t)slot->graph.tcbs.pa, __ATOMIC_RELEASE);
    context->linked++;
  } else {
    dispatch(context, &slot->graph, 0);
  }
  context->chained[context->chained_count++] = slot;
  return true;
}

static bool submit_x3(struct context *context, struct slot *slot) {
  if (look(context, SIM_AIPU_STATUS) & 1) return false;
  dispatch(context, &slot->graph, slot->graph.grid % 2);
  return true;
}

static void poll_x2(struct context *context) {
  if (!context->chained_count) return;
  uint32_t status = look(context, SIM_AIPU_POOL_STATUS);
  if (!(status & SIM_AIPU_POOL_IDLE)) return;
  context->exceptions += (SIM_AIPU_POOL_END(status) & SIM_AIPU_END_EXCEPTION) != 0;
  put(context, SIM_AIPU_SCHED_CTRL, SIM_AIPU_DESTROY);
  while (context->chained_count) context->chained[--context->chained_count]->done = true;
}

static void on_end(uint32_t event, uint64_t grid, void *argument) {
  struct context *context = argument;
  CHECK(event == AIPU_EV_GRID_END && grid >= 1 && grid <= MOST_JOBS, "a wrong event");
  context->slots[grid - 1].done = true;
}

static int32_t *tensor(struct graph *graph, bool output) {
  uint32_t at = output ? graph->output_section[0] + graph->outputs[0]->offset
                       : graph->input_section[0] + graph->inputs[0]->offset;
  return (int32_t *)(void *)(graph->reuse.data + at);
}

/* One job: it must end, and leave what it computed, or when it faults nothing. */
static void run_job(struct runner *runner, int32_t value) {
  struct context *context = runner->context;
  struct graph *graph = &runner->slot->graph;
  bool faults = draw(runner, 50) == 0, taken = false;
  for (int32_t i = 0; i < ELEMENTS; i++) {
    tensor(graph, false)[i] = faults ? -1 : value + i;
    tensor(graph, true)[i] = UNTOUCHED;
  }
  graph_chain(graph, graph->tcbs.data);
  runner->faults += faults;
  runner->slot->done = false;
  uint32_t turn = 0;
  for (; !runner->slot->done && turn < TURNS; turn++) {
    rest(runner);
    pthread_mutex_lock(&context->lock);
    if (!taken) taken = graph->file.x3 ? submit_x3(context, runner->slot) : submit_x2(context, runner->slot);
    else if (!graph->file.x3) poll_x2(context);
    pthread_mutex_unlock(&context->lock);
  }
  CHECK(turn < TURNS, "a job does not end");
  for (int32_t i = 0; i < ELEMENTS; i++) {
    int32_t wanted = faults ? UNTOUCHED : value + i + 1;
    CHECK(tensor(graph, true)[i] == wanted, "round %d: element %d is %d instead of %d", value, i,
          tensor(graph, true)[i], wanted);
  }
}

static void *run_jobs(void *argument) {
  struct runner *runner = argument;
  for (uint32_t round = 0; round < runner->context->storm->rounds; round++) {
    rest(runner);
    run_job(runner, (int32_t)(round * 64 + runner->slot->graph.grid));
  }
  return NULL;
}

static void open_context(struct context *context, const struct storm *storm) {
  context->storm = storm;
  graph_load(&context->loaded, &context->memory, storm->path, 0);
  for (uint32_t t = 0; t < storm->threads; t++) {
    graph_add_job(&context->slots[t].graph, &context->loaded);
    context->slots[t].graph.grid = (uint16_t)(t + 1);
  }
  const mem_interface_t memory = memory_interface(&context->memory);
  context->sim = storm->api->create(storm->config, &memory);
  CHECK(context->sim, "no simulator");
  if (context->loaded.file.x3) storm->api->set_event_handler(context->sim, on_end, context);
}

void storm_run(const struct storm *storm) {
  CHECK(storm->threads >= 1 && storm->threads <= MOST_JOBS, "1 to %d threads", MOST_JOBS);
  struct context *contexts = calloc(storm->contexts, sizeof *contexts);
  struct runner *runners = calloc((size_t)storm->contexts * storm->threads, sizeof *runners);
  CHECK(contexts && runners, "no memory");
  uint32_t faults = 0, wrong = 0, count = storm->contexts * storm->threads;
  for (uint32_t c = 0; c < storm->contexts; c++) open_context(&contexts[c], storm);
  for (uint32_t r = 0; r < count; r++) {
    struct context *context = &contexts[r / storm->threads];
    runners[r] = (struct runner){.context = context, .slot = &context->slots[r % storm->threads], .random = r * 77 + 1};
    CHECK(pthread_create(&runners[r].thread, NULL, run_jobs, &runners[r]) == 0, "no thread");
  }
  for (uint32_t r = 0; r < count; r++) {
    pthread_join(runners[r].thread, NULL);
    faults += runners[r].faults;
  }
  uint32_t seen = 0, linked = 0;
  for (uint32_t c = 0; c < storm->contexts; c++) {
    storm->api->destroy(contexts[c].sim);
    wrong += contexts[c].memory.wrong;
    seen += contexts[c].exceptions;
    linked += contexts[c].linked;
  }
  printf("storm jobs %u linked %u faults %u seen %u wrong %u\n", count * storm->rounds, linked, faults, seen, wrong);
}
