#include "driver.h"

#define LOOK_MS 20
#define NULL_POINTER (~0ull)

#ifdef COMPASS_STATIC_DRIVER /* the driver is linked into this program: nothing is loaded */
const char *compass_error_detail(void) __attribute__((weak));

bool driver_open(struct driver *driver, const char *library, const char *engine, struct failure *failure) {
  if (library)
    return wrong(failure, "rpc-driver", "'%.200s' cannot be loaded: the driver is a part of this program", library);
  *driver = (struct driver){.engine = engine, .detail = compass_error_detail};
#define X(name, parameters) driver->name = aipu_##name;
  DRIVER_FUNCTIONS(X)
#undef X
  return true;
}
#else
bool driver_open(struct driver *driver, const char *library, const char *engine, struct failure *failure) {
  *driver = (struct driver){.engine = engine, .library = dlopen(library, RTLD_NOW)};
  if (!driver->library) return wrong(failure, "rpc-driver", "the driver's library cannot be loaded: %.400s", dlerror());
  void *found;
#define X(name, parameters)                                                                           \
  if (!(found = dlsym(driver->library, "aipu_" #name)))                                               \
    return wrong(failure, "rpc-driver", "the library '%.200s' has no function aipu_" #name, library); \
  memcpy(&driver->name, &found, sizeof found);
  DRIVER_FUNCTIONS(X)
#undef X
  found = dlsym(driver->library, "compass_error_detail");
  memcpy(&driver->detail, &found, sizeof found);
  return true;
}
#endif

/* What the driver says of a status, in the thread that got it. */
static void explain(const struct driver *driver, aipu_status_t status, char *out, size_t size) {
  const char *text = driver->detail ? driver->detail() : NULL;
  if (!text || !*text) driver->get_error_message(driver->context, status, &text);
  snprintf(out, size, "%s (status %#x)", text && *text ? text : "the driver says no more", (unsigned)status);
}

static bool refused(const struct driver *driver, aipu_status_t status, const char *what, struct failure *failure) {
  char text[400];
  explain(driver, status, text, sizeof text);
  return wrong(failure, status == AIPU_STATUS_ERROR_INVALID_GBIN ? "invalid-gbin" : "rpc-driver", "%s: %s", what, text);
}

bool driver_begin(struct driver *driver, struct failure *failure) {
  aipu_status_t status = driver->init_context(&driver->context);
  if (status) return refused(driver, status, "the driver does not open its device", failure);
  if (!driver->detail || !driver->engine) return true;
  char *engine = strdup(driver->engine);
  aipu_global_config_simulation_t config = {.simulator = engine};
  status = driver->config_global(driver->context, AIPU_CONFIG_TYPE_SIMULATION, &config);
  free(engine);
  return !status || refused(driver, status, "the simulator is not there", failure);
}

bool program_load(struct program *program, struct driver *driver, uint8_t *data, uint32_t size,
                  struct failure *failure) {
  *program = (struct program){.driver = driver};
  return container_read(&program->container, data, size, failure);
}

static void forget(struct driver *driver, struct made_job *job) {
  if (job->graph) driver->unload_graph(driver->context, job->graph);
  free(job->content);
  free(job->sizes);
  *job = (struct made_job){0};
}

void program_free(struct program *program) {
  struct driver *driver = program->driver;
  for (int i = 0; i < MOST_JOBS; i++)
    if (driver->jobs[i].program == program) forget(driver, &driver->jobs[i]);
  container_free(&program->container);
}

static const char *role_name(enum role role) { return role == ROLE_INPUT ? "input" : "output"; }

/* Whether what is given for a tensor fits; its bytes, or NULL_POINTER. */
static bool tensor_size(const struct parameter *p, const struct operand *given, uint64_t *size,
                        struct failure *failure) {
  if (given->is_number && !(given->is_integer && !given->integer))
    return wrong(failure, "argument-type", "%s '%s' takes a tensor, not a number", role_name(p->role), p->name);
  bool nothing = !given->data && !given->is_absent;
  *size = nothing ? NULL_POINTER : given->nbytes;
  if (nothing) return true;
  if (given->type && given->type->size != p->type->size && p->type->size != 1)
    return wrong(failure, "tensor-dtype", "%s '%s' is %s, but the array is %s", role_name(p->role), p->name,
                 p->type->name, given->type->name);
  if (p->nbytes && given->nbytes != p->nbytes)
    return wrong(failure, "tensor-size", "%s '%s' takes %llu bytes, but the array has %llu", role_name(p->role),
                 p->name, (unsigned long long)p->nbytes, (unsigned long long)given->nbytes);
  if (given->nbytes % p->type->size)
    return wrong(failure, "tensor-size", "%s '%s' takes whole elements of %u bytes, but the array has %llu bytes",
                 role_name(p->role), p->name, p->type->size, (unsigned long long)given->nbytes);
  return true;
}

static bool same_constant(const struct container *file, const struct parameter *p, const struct operand *given,
                          struct failure *failure) {
  if (given->is_absent) return true;
  if (p->source && given->data && given->nbytes == p->nbytes &&
      !memcmp(file->data + p->source, given->data, given->nbytes))
    return true;
  return wrong(failure, "tensor-size",
               "constant '%s' is not what the kernel was built with: build it again with this content", p->name);
}

/* The bytes of all tensors, by parameter. */
static bool all_sizes(const struct container *file, const struct operand *operands, uint64_t memory, uint64_t *sizes,
                      struct failure *failure) {
  uint64_t whole = 0;
  for (uint32_t i = 0; i < file->count; i++) {
    const struct parameter *p = &file->parameters[i];
    if (p->role == ROLE_CONSTANT && !same_constant(file, p, &operands[i], failure)) return false;
    if (p->role > ROLE_OUTPUT) continue;
    if (!tensor_size(p, &operands[i], &sizes[i], failure)) return false;
    whole += sizes[i] == NULL_POINTER ? 0 : sizes[i];
    if (whole > memory || (sizes[i] != NULL_POINTER && sizes[i] > 3u << 30))
      return wrong(failure, "rpc-quota", "the tensors of a program may have %llu bytes", (unsigned long long)memory);
  }
  return true;
}

/* Loads the file with these sizes, and makes a job of it. */
static bool make_job(struct program *program, struct made_job *job, struct failure *failure) {
  struct driver *driver = program->driver;
  const struct container *file = &program->container;
  uint64_t *sizes = calloc(file->count + 1, sizeof *sizes);
  for (uint32_t i = 0; sizes && i < file->count; i++) sizes[i] = job->sizes[i] == NULL_POINTER ? 1 : job->sizes[i];
  job->content = sizes ? container_sized(file, sizes) : NULL;
  free(sizes);
  if (!job->content) return wrong(failure, "buf-alloc-fail", "there is no memory for the program");
  aipu_create_job_cfg_t config = {0};
  aipu_load_graph_cfg_t load = {0};
  aipu_status_t status =
      driver->load_graph_helper(driver->context, (const char *)job->content, file->size, &job->graph, &load);
  if (status) return job->graph = 0, refused(driver, status, "the driver does not load the program", failure);
  status = driver->create_job(driver->context, job->graph, &job->job, &config);
  if (status) return refused(driver, status, "the driver makes no job of the program", failure);
  for (uint32_t i = 0; i < file->count; i++) {
    const struct parameter *p = &file->parameters[i];
    if (p->role > ROLE_OUTPUT) continue;
    aipu_tensor_desc_t tensor;
    aipu_tensor_type_t type = p->role == ROLE_INPUT ? AIPU_TENSOR_TYPE_INPUT : AIPU_TENSOR_TYPE_OUTPUT;
    status = driver->get_tensor_descriptor(driver->context, job->job, type, p->index, &tensor);
    if (!status && job->sizes[i] != NULL_POINTER && tensor.size != job->sizes[i]) /* nothing else is copied then */
      return wrong(failure, "rpc-driver", "%s '%s' has %llu bytes, and the driver says %u", role_name(p->role), p->name,
                   (unsigned long long)job->sizes[i], tensor.size);
    if (!status && job->sizes[i] == NULL_POINTER)
      status = driver->rewrite_rodata(driver->context, job->job, p->word, 0);
    if (status) return refused(driver, status, "the driver does not know a tensor of the program", failure);
  }
  return true;
}

/* The job for these sizes, one that was made before where there is one; `sizes` is taken. */
static struct made_job *job_for(struct program *program, uint64_t *sizes, struct failure *failure) {
  struct driver *driver = program->driver;
  size_t bytes = program->container.count * sizeof *sizes;
  for (int i = 0; i < MOST_JOBS; i++)
    if (driver->jobs[i].program == program && !memcmp(driver->jobs[i].sizes, sizes, bytes))
      return free(sizes), &driver->jobs[i];
  struct made_job *job = &driver->jobs[driver->next];
  driver->next = (driver->next + 1) % MOST_JOBS;
  forget(driver, job);
  job->program = program;
  job->sizes = sizes;
  if (make_job(program, job, failure)) return job;
  forget(driver, job);
  return NULL;
}

/* The bits of a float32 as a float of 16 bits, of which `fraction` are the fraction's; rounded to nearest even. */
static uint32_t narrow(float value, int fraction) {
  uint32_t bits, sign, drop = 23 - (uint32_t)fraction;
  memcpy(&bits, &value, 4);
  sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return sign | (fraction == 7 ? 0x7fc0 : 0x7e00);
  if (fraction == 7) return sign | (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  if (bits >= 0x47800000) return sign | (bits == 0x7f800000 || bits >= 0x477ff000 ? 0x7c00 : 0);
  if (bits < 0x38800000) { /* below the smallest normal number */
    uint32_t exponent = bits >> 23, shift = 126 - exponent, whole = (bits & 0x7fffff) | 0x800000;
    if (shift > 24) return sign;
    uint32_t half = 1u << (shift - 1), rest = whole & ((1u << shift) - 1), found = whole >> shift;
    return sign | (found + (rest > half || (rest == half && (found & 1))));
  }
  uint32_t rounded = bits + (1u << (drop - 1)) - 1 + (bits >> drop & 1);
  return sign | ((rounded - 0x38000000) >> drop);
}

/* The word that passes a scalar. */
static bool scalar_word(const struct parameter *p, const struct operand *given, uint32_t *word,
                        struct failure *failure) {
  if (!given->is_number) return wrong(failure, "argument-type", "'%s' must be a number", p->name);
  bool is_float = p->type->kind == 'f' || p->type->kind == 'g', is_signed = p->type->kind == 'i';
  uint32_t bits = 8 * p->type->size;
  float small = (float)given->number;
  if (bits > 32) return wrong(failure, "scalar-value", "'%s': scalars of 64 bits cannot be passed", p->name);
  if (is_float) {
    memcpy(word, &small, 4);
    if (bits == 16) *word = narrow(small, p->type->kind == 'g' ? 7 : 10);
    bool beyond = given->number - given->number == 0 &&
                  (small - small != 0 || (bits == 16 && p->type->kind == 'f' && (*word & 0x7fff) == 0x7c00));
    return !beyond ||
           wrong(failure, "scalar-value", "'%s': %g is not a value of type %s", p->name, given->number, p->type->name);
  }
  bool whole = given->is_integer ||
               (given->number >= -9e15 && given->number <= 9e15 && given->number == (double)(int64_t)given->number);
  int64_t value = given->is_integer ? given->integer : whole ? (int64_t)given->number : 0;
  int64_t least = is_signed ? -(1ll << (bits - 1)) : 0, most = is_signed ? (1ll << (bits - 1)) - 1 : (1ll << bits) - 1;
  if (!strcmp(p->type->name, "bool")) value = value != 0;
  *word = (uint32_t)value;
  if (!whole || value < least || value > most)
    return wrong(failure, "scalar-value", "'%s': %.17g is not a value of type %s", p->name, given->number,
                 p->type->name);
  return true;
}

static aipu_status_t put(struct driver *driver, const struct made_job *job, const struct parameter *p,
                         const struct operand *given) {
  if (p->role == ROLE_INPUT) return driver->load_tensor(driver->context, job->job, p->index, given->data);
  void *zeros = given->is_absent ? calloc(1, given->nbytes + 1) : given->data;
  aipu_status_t status =
      zeros ? driver->load_output_tensor(driver->context, job->job, p->index, zeros) : AIPU_STATUS_ERROR_BUF_ALLOC_FAIL;
  if (given->is_absent) free(zeros);
  return status;
}

bool program_fill(struct program *program, const struct operand *operands, uint64_t memory, struct made_job **job,
                  struct failure *failure) {
  struct driver *driver = program->driver;
  const struct container *file = &program->container;
  uint64_t *sizes = calloc(file->count + 1, sizeof *sizes);
  if (!sizes) return wrong(failure, "buf-alloc-fail", "there is no memory for a job");
  if (!all_sizes(file, operands, memory, sizes, failure)) return free(sizes), false;
  *job = job_for(program, sizes, failure);
  if (!*job) return false;
  for (uint32_t i = 0; i < file->count; i++) {
    const struct parameter *p = &file->parameters[i];
    aipu_status_t status = AIPU_STATUS_SUCCESS;
    uint32_t bits;
    if (p->role == ROLE_SCALAR) {
      if (!scalar_word(p, &operands[i], &bits, failure)) return false;
      status = driver->rewrite_rodata(driver->context, (*job)->job, p->word, bits);
    } else if (p->role <= ROLE_OUTPUT && (*job)->sizes[i] != NULL_POINTER && (*job)->sizes[i]) {
      status = put(driver, *job, p, &operands[i]);
    }
    if (status) return refused(driver, status, "the driver does not take an argument", failure);
  }
  return true;
}

/* A run in a thread of its own: the driver waits for its end, and does nothing else meanwhile. */
struct thread_run {
  struct driver *driver;
  uint64_t job;
  int32_t milliseconds;
  int done; /* the end of a pipe to which a byte goes when it has ended */
  aipu_status_t status;
  double seconds;
  char text[400];
};

static void *finish(void *argument) {
  struct thread_run *run = argument;
  double start = now();
  run->status = run->driver->finish_job(run->driver->context, run->job, run->milliseconds);
  run->seconds = now() - start;
  if (run->status) explain(run->driver, run->status, run->text, sizeof run->text);
  while (write(run->done, "", 1) < 0 && errno == EINTR) {
  }
  return NULL;
}

/* Waits for the run, which its own limit ends: a driver has no other way. LOST ends this process, and with it all that
 * it runs. */
static enum receipt wait_run(int done, const struct watch *watch) {
  struct pollfd wait = {.fd = done, .events = POLLIN};
  enum receipt why = QUIET;
  while (poll(&wait, 1, LOOK_MS) <= 0) {
    if (why == QUIET) why = watch->look(watch->context);
    if (why == LOST) _exit(0);
  }
  return why;
}

bool catch_printed(void) {
  int out = memfd_create("stdout", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  bool good = out >= 0 && ftruncate(out, MOST_PRINTED) == 0 &&
              fcntl(out, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) == 0 && dup2(out, 1) == 1;
  if (out >= 0) close(out);
  return good;
}

/* What the driver and its device wrote to stdout; of many runs together as much as of one. */
static void take_printed(struct text *out) {
  static const char cut[] = "\n... (what else was printed has no room)\n";
  char part[4096];
  long at = 0, n = 0;
  fflush(NULL);
  long end = lseek(1, 0, 1);
  for (; at < end && out->size < MOST_PRINTED; at += n) {
    n = pread(1, part, end - at < (long)sizeof part ? (size_t)(end - at) : sizeof part, at);
    if (n <= 0) break;
    text_add(out, part, (size_t)n);
  }
  if ((end >= (long)MOST_PRINTED || at < end) && out->size < MOST_PRINTED + sizeof cut) text_put(out, cut);
  lseek(1, 0, 0);
}

bool program_run(struct program *program, struct made_job *job, double seconds, const struct watch *watch,
                 struct run *run, struct failure *failure) {
  int ends[2];
  pthread_t thread;
  enum receipt before = watch->look(watch->context);
  double left = watch->end - now(), limit = seconds > 0 && seconds < left ? seconds : left;
  if (before == LOST) _exit(0);
  if (before == RECEIVED) return wrong(failure, "rpc-cancelled", "the call was cancelled");
  if (left <= 0) return wrong(failure, "rpc-deadline", "the call took too long and was stopped");
  bool own = limit < left;
  if (pipe2(ends, O_CLOEXEC) != 0) return wrong(failure, "rpc-driver", "there is no pipe for a run");
  struct thread_run there = {.driver = program->driver,
                             .job = job->job,
                             .done = ends[1],
                             .milliseconds = limit < 1e6 ? (int32_t)(limit * 1000) + 1 : 1000000000};
  if (pthread_create(&thread, NULL, finish, &there) != 0)
    return close(ends[0]), close(ends[1]), wrong(failure, "rpc-driver", "there is no thread for a run");
  enum receipt why = wait_run(ends[0], watch);
  pthread_join(thread, NULL);
  close(ends[0]);
  close(ends[1]);
  run->seconds += there.seconds;
  take_printed(&run->printed);
  if (there.status) forget(program->driver, job); /* nothing is known of its memory */
  if (why == RECEIVED) return wrong(failure, "rpc-cancelled", "the call was cancelled");
  if (there.status && !own && now() >= watch->end)
    return wrong(failure, "rpc-deadline", "the call took too long and was stopped");
  if (!there.status) return true;
  bool late = there.status == AIPU_STATUS_ERROR_JOB_TIMEOUT || there.status == AIPU_STATUS_ERROR_TIMEOUT ||
              (own && there.seconds >= limit);
  return wrong(failure, late ? "kernel-timeout" : "job-exception", "%s", there.text);
}

bool program_store(struct program *program, struct made_job *job, struct operand *operands, struct failure *failure) {
  struct driver *driver = program->driver;
  for (uint32_t i = 0; i < program->container.count; i++) {
    const struct parameter *p = &program->container.parameters[i];
    if (p->role != ROLE_OUTPUT || !operands[i].data || !job->sizes[i] || job->sizes[i] == NULL_POINTER) continue;
    aipu_status_t status =
        driver->get_tensor(driver->context, job->job, AIPU_TENSOR_TYPE_OUTPUT, p->index, operands[i].data);
    if (status) return refused(driver, status, "the driver gives no output", failure);
  }
  return true;
}
