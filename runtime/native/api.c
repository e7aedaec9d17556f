/* The functions of compass_runtime.h: contexts, graphs and jobs by handle and id. */
#include "job.h"

#define GRAPH_STEP (1ull << 32)
#define NO_LIMIT 0x7fffffffffffffffull
#define MAX_CONTEXTS 256

enum job_state { STATE_INIT, STATE_RUNNING, STATE_DONE, STATE_EXCEPTION };

struct job_entry {
  struct job_entry *next;
  uint64_t id;
  struct job job;
  _Atomic uint32_t state;
  bool missing; /* the process has forked: its inputs are those of the parent, until all are loaded again */
  uint64_t *loaded; /* with `missing`: a bit for each input that was loaded since */
  bool flushed; /* `thread` runs the job, or has run it */
  pthread_t thread;
  aipu_job_callback_func_t callback;
};

struct graph_entry {
  struct graph_entry *next;
  uint64_t id;
  struct graph graph;
  struct device device; /* of its own: other graphs may come from others */
  struct job_entry *jobs;
  uint32_t made; /* jobs so far */
};

struct context {
  aipu_ctx_handle_t handle;
  struct graph_entry *graphs;
  char *engine; /* path of the simulator's engine; NULL: the one the library was built for */
  pthread_mutex_t lock; /* of the lists */
};

static struct context *contexts[MAX_CONTEXTS];
static pthread_mutex_t contexts_lock;

/* Around a fork nobody changes the lists; in the child the threads that ran jobs do not exist. */
static void before_fork(void) {
  pthread_mutex_lock(&contexts_lock);
  for (int i = 0; i < MAX_CONTEXTS; i++)
    if (contexts[i]) pthread_mutex_lock(&contexts[i]->lock);
}

static void after_fork_in_parent(void) {
  for (int i = 0; i < MAX_CONTEXTS; i++)
    if (contexts[i]) pthread_mutex_unlock(&contexts[i]->lock);
  pthread_mutex_unlock(&contexts_lock);
}

static void after_fork_in_child(void) {
  for (int i = 0; i < MAX_CONTEXTS; i++) {
    if (!contexts[i]) continue;
    contexts[i]->lock = (pthread_mutex_t){0};
    for (struct graph_entry *graph = contexts[i]->graphs; graph; graph = graph->next)
      for (struct job_entry *job = graph->jobs; job; job = job->next) job->flushed = false;
  }
  contexts_lock = (pthread_mutex_t){0};
}

/* At the end of the process workers end by themselves, and other threads may still be in here. */
static bool exiting;
static void note_exit(void *unused) {
  (void)unused;
  exiting = true;
}

__attribute__((constructor(102))) static void begin(void) {
  __register_atfork(before_fork, after_fork_in_parent, after_fork_in_child, &__dso_handle);
  __cxa_atexit(note_exit, NULL, &__dso_handle);
}

/* dlclose(): what the program left open ends with the library. */
__attribute__((destructor(102))) static void end(void) {
  for (int i = 0; i < MAX_CONTEXTS && !exiting; i++) {
    pthread_mutex_lock(&contexts_lock);
    const aipu_ctx_handle_t *open = contexts[i] ? &contexts[i]->handle : NULL;
    pthread_mutex_unlock(&contexts_lock);
    if (open) aipu_deinit_context(open);
  }
}

/* Finds a context; with `take` it is no longer known afterwards. */
static aipu_status_t search_context(const aipu_ctx_handle_t *handle, bool take, struct context **found) {
  if (!handle) return fail(AIPU_STATUS_ERROR_NULL_PTR, "the context is NULL");
  pthread_mutex_lock(&contexts_lock);
  int at = 0;
  while (at < MAX_CONTEXTS && !(contexts[at] && &contexts[at]->handle == handle)) at++;
  bool known = at < MAX_CONTEXTS;
  if (known) *found = contexts[at];
  if (known && take) contexts[at] = NULL;
  pthread_mutex_unlock(&contexts_lock);
  return known ? AIPU_STATUS_SUCCESS : fail(AIPU_STATUS_ERROR_INVALID_CTX, "the context does not exist");
}

static aipu_status_t find_context(const aipu_ctx_handle_t *handle, struct context **found) {
  return search_context(handle, false, found);
}

/* In a forked child: the graph and its jobs as they were made, on memory of this process. What tensors held is known to
 * the parent alone. */
static aipu_status_t revive(struct graph_entry *graph) {
  aipu_status_t status = device_renew(&graph->device);
  if (status != AIPU_STATUS_SUCCESS) return status;
  graph_fill(&graph->graph, &graph->device);
  uint32_t inputs = graph_tensors(&graph->graph, SUB_INPUT);
  for (struct job_entry *job = graph->jobs; job; job = job->next) {
    job_refill(&job->job);
    free(job->loaded);
    job->loaded = calloc(inputs / 64 + 1, sizeof *job->loaded);
    job->missing = inputs != 0;
    job->state = STATE_INIT;
  }
  return AIPU_STATUS_SUCCESS;
}

static aipu_status_t find_graph(const aipu_ctx_handle_t *handle, uint64_t id, struct context **context,
                                struct graph_entry **found) {
  aipu_status_t status = find_context(handle, context);
  if (status != AIPU_STATUS_SUCCESS) return status;
  pthread_mutex_lock(&(*context)->lock);
  struct graph_entry *graph = (*context)->graphs;
  while (graph && graph->id != id) graph = graph->next;
  if (graph && graph->device.stale) status = revive(graph);
  pthread_mutex_unlock(&(*context)->lock);
  *found = graph;
  return graph ? status
               : fail(AIPU_STATUS_ERROR_INVALID_GRAPH_ID, "there is no graph %#llx", (unsigned long long)id);
}

static aipu_status_t find_job(const aipu_ctx_handle_t *handle, uint64_t id, struct graph_entry **graph,
                              struct job_entry **found) {
  struct context *context;
  aipu_status_t status = find_context(handle, &context);
  if (status != AIPU_STATUS_SUCCESS) return status;
  struct job_entry *job = NULL;
  status = find_graph(handle, id / GRAPH_STEP * GRAPH_STEP, &context, graph);
  if (status == AIPU_STATUS_SUCCESS) {
    pthread_mutex_lock(&context->lock);
    for (job = (*graph)->jobs; job && job->id != id;) job = job->next;
    pthread_mutex_unlock(&context->lock);
  }
  *found = job;
  if (status == AIPU_STATUS_ERROR_OPEN_DEV_FAIL) return status;
  return job ? AIPU_STATUS_SUCCESS
             : fail(AIPU_STATUS_ERROR_INVALID_JOB_ID, "there is no job %#llx", (unsigned long long)id);
}

aipu_status_t aipu_init_context(aipu_ctx_handle_t **ctx) {
  if (!ctx) return fail(AIPU_STATUS_ERROR_NULL_PTR, "there is nowhere to put the context");
  struct context *context = calloc(1, sizeof *context);
  pthread_mutex_lock(&contexts_lock);
  int free_place = 0;
  while (free_place < MAX_CONTEXTS && contexts[free_place]) free_place++;
  bool kept = context && free_place < MAX_CONTEXTS;
  if (kept) {
    context->handle.handle = (uint32_t)free_place + 1;
    contexts[free_place] = context;
    *ctx = &context->handle;
  }
  pthread_mutex_unlock(&contexts_lock);
  if (kept) return AIPU_STATUS_SUCCESS;
  free(context);
  return fail(AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "no more than %d contexts", MAX_CONTEXTS);
}

static void wait_for(struct job_entry *job) {
  if (job->flushed) pthread_join(job->thread, NULL);
  job->flushed = false;
}

static void free_job(struct job_entry *job) {
  wait_for(job);
  job_free(&job->job);
  free(job->loaded);
  free(job);
}

static void free_graph(struct graph_entry *graph) {
  device_shut(&graph->device); /* a job that runs may never end */
  while (graph->jobs) {
    struct job_entry *job = graph->jobs;
    graph->jobs = job->next;
    free_job(job);
  }
  graph_unload(&graph->graph, &graph->device);
  device_close(&graph->device);
  free(graph);
}

aipu_status_t aipu_deinit_context(const aipu_ctx_handle_t *ctx) {
  struct context *context;
  aipu_status_t status = search_context(ctx, true, &context);
  if (status != AIPU_STATUS_SUCCESS) return status;
  while (context->graphs) {
    struct graph_entry *graph = context->graphs;
    context->graphs = graph->next;
    free_graph(graph);
  }
  free(context->engine);
  free(context);
  return AIPU_STATUS_SUCCESS;
}

aipu_status_t aipu_get_error_message(const aipu_ctx_handle_t *ctx, aipu_status_t status, const char **msg) {
  struct context *context;
  if (!msg) return fail(AIPU_STATUS_ERROR_NULL_PTR, "there is nowhere to put the message");
  *msg = status_text(ctx || status == AIPU_STATUS_ERROR_OPEN_DEV_FAIL ? status : AIPU_STATUS_ERROR_NULL_PTR);
  if (!ctx && status == AIPU_STATUS_ERROR_OPEN_DEV_FAIL) return AIPU_STATUS_SUCCESS;
  return find_context(ctx, &context);
}

aipu_status_t aipu_config_global(const aipu_ctx_handle_t *ctx, uint64_t types, void *config) {
  const uint64_t known = AIPU_CONFIG_TYPE_SIMULATION | AIPU_GLOBAL_CONFIG_TYPE_DISABLE_VER_CHECK |
                         AIPU_GLOBAL_CONFIG_TYPE_ENABLE_VER_CHECK;
  struct context *context;
  aipu_status_t status = find_context(ctx, &context);
  if (status != AIPU_STATUS_SUCCESS) return status;
  if (types & AIPU_CONFIG_TYPE_HW) return fail(AIPU_STATUS_ERROR_OP_NOT_SUPPORTED, "there is no hardware");
  if (types & ~known)
    return fail(AIPU_STATUS_ERROR_INVALID_CONFIG, "unknown flags %#llx", (unsigned long long)(types & ~known));
  if (!(types & AIPU_CONFIG_TYPE_SIMULATION)) return AIPU_STATUS_SUCCESS;
  if (!config) return fail(AIPU_STATUS_ERROR_NULL_PTR, "the configuration is NULL");
  const aipu_global_config_simulation_t *given = config;
  uint32_t gm = given->gm_size, most = 64u << 20;
  if (gm && (gm < 512u << 10 || gm > most || (gm & (gm - 1))))
    return fail(AIPU_STATUS_ERROR_INVALID_CONFIG, "gm_size is %u: it is 0, 512 KB, or 1, 2, 4 .. 64 MB", gm);
  if (given->simulator && !context->graphs) {
    free(context->engine);
    context->engine = strdup(given->simulator);
  }
  return AIPU_STATUS_SUCCESS;
}

static aipu_status_t read_file(const char *path, void **data, uint32_t *size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail(AIPU_STATUS_ERROR_OPEN_FILE_FAIL, "cannot open '%s': %s", path, strerror(errno));
  long end = lseek(file, 0, SEEK_END);
  lseek(file, 0, SEEK_SET);
  *data = end >= 0 && end <= 0x7fffffff ? malloc((size_t)end + 1) : NULL;
  long have = 0;
  for (ssize_t n = 1; *data && have < end && n > 0; have += n > 0 ? n : 0)
    n = read(file, (char *)*data + have, (size_t)(end - have));
  close(file);
  *size = (uint32_t)have;
  if (*data && have == end) return AIPU_STATUS_SUCCESS;
  free(*data);
  return fail(AIPU_STATUS_ERROR_READ_FILE_FAIL, "cannot read '%s'", path);
}

aipu_status_t aipu_load_graph(const aipu_ctx_handle_t *ctx, const char *path, uint64_t *graph,
                              aipu_load_graph_cfg_t *config) {
  void *data;
  uint32_t size;
  if (!path) return fail(AIPU_STATUS_ERROR_NULL_PTR, "the path is NULL");
  aipu_status_t status = read_file(path, &data, &size);
  if (status != AIPU_STATUS_SUCCESS) return status;
  status = aipu_load_graph_helper(ctx, data, size, graph, config);
  free(data);
  return status;
}

/* Puts a graph into the list, under the first free id. */
static void keep_graph(struct context *context, struct graph_entry *graph) {
  pthread_mutex_lock(&context->lock);
  struct graph_entry **at = &context->graphs;
  graph->id = GRAPH_STEP;
  for (; *at && (*at)->id == graph->id; at = &(*at)->next) graph->id += GRAPH_STEP;
  graph->next = *at;
  *at = graph;
  pthread_mutex_unlock(&context->lock);
}

aipu_status_t aipu_load_graph_helper(const aipu_ctx_handle_t *ctx, const char *data, uint32_t size, uint64_t *graph,
                                     aipu_load_graph_cfg_t *config) {
  struct context *context;
  aipu_status_t status = find_context(ctx, &context);
  if (status != AIPU_STATUS_SUCCESS) return status;
  if (!data || !graph) return fail(AIPU_STATUS_ERROR_NULL_PTR, "the data, or where to put the id, is NULL");
  if (config && (config->put_weight_gm || config->put_desc_gm || config->put_ws_gm || config->wt_idxes_cnt))
    return fail(AIPU_STATUS_ERROR_OP_NOT_SUPPORTED, "weights cannot be placed in other memory");
  struct graph_entry *entry = calloc(1, sizeof *entry);
  if (!entry) return fail(AIPU_STATUS_ERROR_BUF_ALLOC_FAIL, "no memory for a graph");
  status = file_read(&entry->graph.file, data, size);
  const struct shape shape = file_shape(&entry->graph.file);
  entry->device.engine = context->engine ? strdup(context->engine) : NULL;
  if (status == AIPU_STATUS_SUCCESS && (status = device_open(&entry->device, &shape)) != AIPU_STATUS_SUCCESS)
    file_free(&entry->graph.file);
  if (status == AIPU_STATUS_SUCCESS) status = graph_load(&entry->graph, &entry->device);
  if (status != AIPU_STATUS_SUCCESS) {
    device_close(&entry->device);
    free(entry);
    return status;
  }
  keep_graph(context, entry);
  *graph = entry->id;
  return AIPU_STATUS_SUCCESS;
}

aipu_status_t aipu_unload_graph(const aipu_ctx_handle_t *ctx, uint64_t id) {
  struct context *context;
  struct graph_entry *graph;
  aipu_status_t status = find_graph(ctx, id, &context, &graph);
  if (status != AIPU_STATUS_SUCCESS) return status;
  pthread_mutex_lock(&context->lock);
  struct graph_entry **at = &context->graphs;
  while (*at != graph) at = &(*at)->next;
  *at = graph->next;
  pthread_mutex_unlock(&context->lock);
  free_graph(graph);
  return AIPU_STATUS_SUCCESS;
}

static aipu_status_t check_job_config(const aipu_create_job_cfg_t *config) {
  if (config->qos_level > 1) return fail(AIPU_STATUS_ERROR_INVALID_QOS, "qos_level is %u: 0 or 1", config->qos_level);
  if (config->partition_id)
    return fail(AIPU_STATUS_ERROR_INVALID_PARTITION_ID, "there is no partition %u", config->partition_id);
  if (config->bind_enable || config->dbg_dispatch || config->fm_mem_region || config->fm_idxes_cnt)
    return fail(AIPU_STATUS_ERROR_OP_NOT_SUPPORTED, "jobs cannot be placed or bound");
  if (config->dynshape || config->dynshape_params.input_shape_cnt)
    return fail(AIPU_STATUS_ERROR_OP_NOT_SUPPORTED, "dynamic shapes are not supported");
  return AIPU_STATUS_SUCCESS;
}

aipu_status_t aipu_create_job(const aipu_ctx_handle_t *ctx, uint64_t id, uint64_t *job, aipu_create_job_cfg_t *config) {
  struct context *context;
  struct graph_entry *graph;
  aipu_status_t status = find_graph(ctx, id, &context, &graph);
  if (status != AIPU_STATUS_SUCCESS) return status;
  if (!job) return fail(AIPU_STATUS_ERROR_NULL_PTR, "there is nowhere to put the job's id");
  if (config && (status = check_job_config(config)) != AIPU_STATUS_SUCCESS) return status;
  struct job_entry *entry = calloc(1, sizeof *entry);
  if (!entry) return fail(AIPU_STATUS_ERROR_BUF_ALLOC_FAIL, "no memory for a job");
  pthread_mutex_lock(&context->lock);
  status = job_make(&entry->job, &graph->graph, &graph->device);
  if (status == AIPU_STATUS_SUCCESS) {
    entry->id = graph->id + ++graph->made;
    entry->next = graph->jobs;
    graph->jobs = entry;
    *job = entry->id;
  }
  pthread_mutex_unlock(&context->lock);
  if (status != AIPU_STATUS_SUCCESS) free(entry);
  return status;
}

aipu_status_t aipu_clean_job(const aipu_ctx_handle_t *ctx, uint64_t id) {
  struct graph_entry *graph;
  struct job_entry *job;
  struct context *context;
  aipu_status_t status = find_job(ctx, id, &graph, &job);
  if (status != AIPU_STATUS_SUCCESS || (status = find_context(ctx, &context)) != AIPU_STATUS_SUCCESS) return status;
  pthread_mutex_lock(&context->lock);
  struct job_entry **at = &graph->jobs;
  while (*at != job) at = &(*at)->next;
  *at = job->next;
  pthread_mutex_unlock(&context->lock);
  free_job(job);
  return AIPU_STATUS_SUCCESS;
}

aipu_status_t aipu_config_job(const aipu_ctx_handle_t *ctx, uint64_t id, uint64_t types, void *config) {
  struct graph_entry *graph;
  struct job_entry *job;
  (void)config;
  aipu_status_t status = find_job(ctx, id, &graph, &job);
  if (status != AIPU_STATUS_SUCCESS || types == AIPU_CONFIG_TYPE_SIMULATION) return status;
  return fail(AIPU_STATUS_ERROR_OP_NOT_SUPPORTED, "job options %#llx are not supported", (unsigned long long)types);
}

/* What a parent process loaded is not in a child's memory. */
static aipu_status_t check_inputs(struct job_entry *job) {
  uint32_t inputs = job->missing ? graph_tensors(job->job.graph, SUB_INPUT) : 0;
  for (uint32_t i = 0; i < inputs; i++)
    if (!job->loaded || !(job->loaded[i / 64] >> i % 64 & 1))
      return fail(AIPU_STATUS_ERROR_INVALID_OP,
                  "the process has forked since input %u of the job was loaded: load it again", i);
  job->missing = false;
  return AIPU_STATUS_SUCCESS;
}

static aipu_status_t run_entry(struct job_entry *job, int32_t timeout) {
  aipu_status_t status = job_run(&job->job, timeout > 0 ? (uint64_t)timeout * 1000000 : NO_LIMIT);
  job->state = status == AIPU_STATUS_SUCCESS ? STATE_DONE : STATE_EXCEPTION;
  return status;
}

aipu_status_t aipu_finish_job(const aipu_ctx_handle_t *ctx, uint64_t id, int32_t timeout) {
  struct graph_entry *graph;
  struct job_entry *job;
  aipu_status_t status = find_job(ctx, id, &graph, &job);
  if (status != AIPU_STATUS_SUCCESS) return status;
  if (job->flushed) return fail(AIPU_STATUS_ERROR_INVALID_OP, "the job runs: wait with aipu_get_job_status");
  if ((status = check_inputs(job)) != AIPU_STATUS_SUCCESS) return status;
  return run_entry(job, timeout);
}

static void *run_flushed(void *entry) {
  struct job_entry *job = entry;
  aipu_status_t status = run_entry(job, -1);
  if (job->callback)
    job->callback(job->id, status == AIPU_STATUS_SUCCESS ? AIPU_JOB_STATUS_DONE : AIPU_JOB_STATUS_EXCEPTION);
  return NULL;
}

aipu_status_t aipu_flush_job(const aipu_ctx_handle_t *ctx, uint64_t id, aipu_job_callback_func_t callback) {
  struct graph_entry *graph;
  struct job_entry *job;
  aipu_status_t status = find_job(ctx, id, &graph, &job);
  if (status != AIPU_STATUS_SUCCESS) return status;
  if (job->flushed) return fail(AIPU_STATUS_ERROR_INVALID_OP, "the job runs already: wait with aipu_get_job_status");
  if ((status = check_inputs(job)) != AIPU_STATUS_SUCCESS) return status;
  job->callback = callback;
  job->state = STATE_RUNNING;
  job->flushed = true;
  if (pthread_create(&job->thread, NULL, run_flushed, job) == 0) return AIPU_STATUS_SUCCESS;
  job->flushed = false;
  job->state = STATE_EXCEPTION;
  return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "no thread for the job");
}

aipu_status_t aipu_get_job_status(const aipu_ctx_handle_t *ctx, uint64_t id, aipu_job_status_t *result,
                                  int32_t timeout) {
  static const aipu_job_status_t shown[] = {AIPU_JOB_STATUS_NO_STATUS, AIPU_JOB_STATUS_NO_STATUS,
                                            AIPU_JOB_STATUS_DONE, AIPU_JOB_STATUS_EXCEPTION};
  struct graph_entry *graph;
  struct job_entry *job;
  (void)timeout; /* as on the vendor's simulator: every value waits for the end */
  aipu_status_t status = find_job(ctx, id, &graph, &job);
  if (status != AIPU_STATUS_SUCCESS) return status;
  if (!result) return fail(AIPU_STATUS_ERROR_NULL_PTR, "there is nowhere to put the state");
  wait_for(job);
  *result = shown[job->state];
  return AIPU_STATUS_SUCCESS;
}

/* The kind of sub-section a tensor type stands for; -1 for types that nobody may ask for. */
static int kind_of(aipu_tensor_type_t type) {
  switch (type) {
    case AIPU_TENSOR_TYPE_INPUT: return SUB_INPUT;
    case AIPU_TENSOR_TYPE_OUTPUT: return SUB_OUTPUT;
    case AIPU_TENSOR_TYPE_INTER_DUMP: return SUB_INTER_DUMP;
    case AIPU_TENSOR_TYPE_PRINTF: return SUB_PRINTF;
    case AIPU_TENSOR_TYPE_PROFILER: return SUB_PROFILER;
    case AIPU_TENSOR_TYPE_OUT_TENSOR_SHAPE: return SUB_OUTPUT_SHAPE;
    default: return -1;
  }
}

/* The graph that an id, its own or of one of its jobs, belongs to, and the kind a tensor type stands for. */
static aipu_status_t find_kind(const aipu_ctx_handle_t *ctx, uint64_t id, aipu_tensor_type_t type,
                               struct graph_entry **graph, int *kind) {
  struct context *context;
  struct job_entry *job;
  aipu_status_t status =
      id % GRAPH_STEP ? find_job(ctx, id, graph, &job) : find_graph(ctx, id, &context, graph);
  if (status != AIPU_STATUS_SUCCESS) return status;
  *kind = kind_of(type);
  return *kind >= 0 ? status : fail(AIPU_STATUS_ERROR_INVALID_TENSOR_TYPE, "tensor type %d", (int)type);
}

aipu_status_t aipu_get_tensor_count(const aipu_ctx_handle_t *ctx, uint64_t id, aipu_tensor_type_t type,
                                    uint32_t *count) {
  struct graph_entry *graph;
  int kind;
  if (!count) return fail(AIPU_STATUS_ERROR_NULL_PTR, "there is nowhere to put the count");
  aipu_status_t status = find_kind(ctx, id, type, &graph, &kind);
  if (status == AIPU_STATUS_SUCCESS) *count = graph_tensors(&graph->graph, (uint32_t)kind);
  return status;
}

aipu_status_t aipu_get_tensor_descriptor(const aipu_ctx_handle_t *ctx, uint64_t id, aipu_tensor_type_t type,
                                         uint32_t tensor, aipu_tensor_desc_t *descriptor) {
  struct graph_entry *graph;
  int kind;
  if (!descriptor) return fail(AIPU_STATUS_ERROR_NULL_PTR, "there is nowhere to put the descriptor");
  aipu_status_t status = find_kind(ctx, id, type, &graph, &kind);
  if (status != AIPU_STATUS_SUCCESS) return status;
  const struct tensor *found = graph_tensor(&graph->graph, (uint32_t)kind, tensor);
  if (!found) return fail(AIPU_STATUS_ERROR_INVALID_TENSOR_ID, "there is no tensor %u", tensor);
  const struct sub_section *sub = found->sub;
  *descriptor = (aipu_tensor_desc_t){tensor, sub->size, sub->scale, sub->zero_point, (aipu_data_type_t)sub->data_type};
  return AIPU_STATUS_SUCCESS;
}

/* Where a tensor of a job lies. */
static aipu_status_t find_memory(const aipu_ctx_handle_t *ctx, uint64_t id, aipu_tensor_type_t type, uint32_t tensor,
                                 struct job_entry **job, uint8_t **memory, uint32_t *size) {
  struct graph_entry *graph;
  aipu_tensor_desc_t descriptor;
  aipu_status_t status = find_job(ctx, id, &graph, job);
  if (status != AIPU_STATUS_SUCCESS) return status;
  if ((status = aipu_get_tensor_descriptor(ctx, id, type, tensor, &descriptor)) != AIPU_STATUS_SUCCESS) return status;
  const struct tensor *found = graph_tensor(&graph->graph, (uint32_t)kind_of(type), tensor);
  const struct job *placed = &(*job)->job;
  *memory = placed->device->memory + placed->base + placed->plan.reuses[found->section] + found->sub->offset;
  *size = found->sub->size;
  return AIPU_STATUS_SUCCESS;
}

static aipu_status_t put(const aipu_ctx_handle_t *ctx, uint64_t id, aipu_tensor_type_t type, uint32_t tensor,
                         const void *data) {
  struct job_entry *job;
  uint8_t *memory;
  uint32_t size;
  if (!data) return fail(AIPU_STATUS_ERROR_NULL_PTR, "the data is NULL");
  aipu_status_t status = find_memory(ctx, id, type, tensor, &job, &memory, &size);
  if (status != AIPU_STATUS_SUCCESS) return status;
  if (job->state == STATE_RUNNING) return fail(AIPU_STATUS_ERROR_INVALID_OP, "the job is running");
  memcpy(memory, data, size);
  if (type == AIPU_TENSOR_TYPE_INPUT && job->missing && job->loaded) job->loaded[tensor / 64] |= 1ull << tensor % 64;
  return AIPU_STATUS_SUCCESS;
}

aipu_status_t aipu_load_tensor(const aipu_ctx_handle_t *ctx, uint64_t job, uint32_t tensor, const void *data) {
  return put(ctx, job, AIPU_TENSOR_TYPE_INPUT, tensor, data);
}

aipu_status_t aipu_load_output_tensor(const aipu_ctx_handle_t *ctx, uint64_t job, uint32_t tensor, const void *data) {
  return put(ctx, job, AIPU_TENSOR_TYPE_OUTPUT, tensor, data);
}

aipu_status_t aipu_get_tensor(const aipu_ctx_handle_t *ctx, uint64_t id, aipu_tensor_type_t type, uint32_t tensor,
                              void *data) {
  struct job_entry *job;
  uint8_t *memory;
  uint32_t size;
  if (!data) return fail(AIPU_STATUS_ERROR_NULL_PTR, "there is nowhere to put the tensor");
  aipu_status_t status = find_memory(ctx, id, type, tensor, &job, &memory, &size);
  if (status != AIPU_STATUS_SUCCESS) return status;
  if (job->state != STATE_DONE) return fail(AIPU_STATUS_ERROR_INVALID_OP, "the job has not run to its end");
  memcpy(data, memory, size);
  return AIPU_STATUS_SUCCESS;
}

aipu_status_t aipu_rewrite_rodata(const aipu_ctx_handle_t *ctx, uint64_t id, uint32_t offset, uint32_t value) {
  struct graph_entry *graph;
  struct job_entry *job;
  aipu_status_t status = find_job(ctx, id, &graph, &job);
  if (status != AIPU_STATUS_SUCCESS) return status;
  uint32_t size = graph->graph.file.params.size;
  if (!size) return fail(AIPU_STATUS_ERROR_NULL_PTR, "the graph has no parameter blocks");
  if (offset % 4 || (uint64_t)offset + 4 > size)
    return fail(AIPU_STATUS_ERROR_INVALID_SIZE, "the parameter blocks have no word at %u", offset);
  if (job->state == STATE_RUNNING) return fail(AIPU_STATUS_ERROR_INVALID_OP, "the job is running");
  job_rewrite(&job->job, offset, value);
  return AIPU_STATUS_SUCCESS;
}

aipu_status_t aipu_get_device_status(const aipu_ctx_handle_t *ctx, device_status_t *status) {
  struct context *context;
  aipu_status_t found = find_context(ctx, &context);
  if (found == AIPU_STATUS_SUCCESS && !status) return fail(AIPU_STATUS_ERROR_NULL_PTR, "there is nowhere to put it");
  if (found == AIPU_STATUS_SUCCESS) *status = DEV_IDLE;
  return found;
}
