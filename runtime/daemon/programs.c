/* The functions of a session on programs of the NPU: loading, calling, measuring. */
#include "session.h"

#define MOST_FILE (1u << 30)

static bool nothing(struct call *call) { return text_put(&call->result, "null"), true; }

static const struct object *module_argument(struct call *call) { return argument_object(call, call->arguments[0]); }

/* The content of a file of the session, which is the caller's to free. */
static uint8_t *content_of(struct call *call, uint32_t *size) {
  struct name name = argument_name(call, 0);
  int file = folder_file(&call->session->folder, name, &call->failure);
  if (file < 0 && !memchr(name.data, '/', name.size) && name.size && strncmp(name.data, ".", 1) != 0)
    wrong(&call->failure, "rpc-file", "there is no file '%.*s' in this session", name.size < 200 ? (int)name.size : 200,
          name.data);
  long end = file < 0 ? -1 : lseek(file, 0, 2);
  uint8_t *data = end >= 0 && end <= MOST_FILE ? malloc((size_t)end + 1) : NULL;
  ssize_t n = 1;
  size_t have = 0;
  for (; data && have < (size_t)end && n > 0; have += n > 0 ? (size_t)n : 0)
    n = pread(file, data + have, (size_t)end - have, (long)have);
  if (file >= 0) close(file);
  if (file >= 0 && (!data || n <= 0)) {
    wrong(&call->failure, "rpc-file", "the file cannot be read, or is too large");
    free(data);
    return NULL;
  }
  *size = (uint32_t)have;
  return data;
}

static bool load(struct call *call) {
  uint32_t size;
  uint8_t *data = content_of(call, &size);
  if (!data) return false;
  struct module *module = calloc(1, sizeof *module);
  bool is_elf = size > 4 && !memcmp(data, "\177ELF", 4);
  if (!is_elf)
    wrong(&call->failure, "rpc-right",
          "this server loads an aipu.bin alone: modules of other kinds need one in Python");
  if (!module || !is_elf || !program_load(&module->program, call->session->driver, data, size, &call->failure)) {
    free(module);
    free(data);
    return false;
  }
  module->users = 1;
  struct object made = {.kind = OBJECT_MODULE, .module = module};
  if (answer_object(call, &call->result, &made)) return true;
  program_free(&module->program);
  free(module);
  return false;
}

static bool is_function(const struct module *module, const struct json *name) {
  return json_is(name, "__tvm_main__") ||
         (module->program.container.is_kernel && json_is(name, module->program.container.kernel));
}

static bool find_function(struct call *call) {
  struct module *module = module_argument(call)->module;
  if (!is_function(module, call->arguments[1])) return nothing(call);
  struct object found = {.kind = OBJECT_FUNCTION, .module = module};
  if (!answer_object(call, &call->result, &found)) return false;
  module->users++;
  return true;
}

static bool no_imports(struct call *call) { return text_put(&call->result, "[]"), true; }

static bool no_import(struct call *call) {
  return wrong(&call->failure, "rpc-call",
               "the modules of this server are single files: a module that imports others needs a server in Python");
}

static bool no_text(struct call *call) { return text_put(&call->result, "\"\""), true; }

/* -- runs */

static bool operand_of(struct call *call, const struct json *value, struct operand *out) {
  const struct object *tensor = argument_object(call, value);
  const struct part *part = argument_part(call, value);
  const struct json *dtype = json_find(value, "dtype");
  *out = (struct operand){0};
  if (value->kind == JSON_NULL) return true;
  if (value->kind == JSON_INTEGER || value->kind == JSON_FLOAT || value->kind == JSON_TRUE ||
      value->kind == JSON_FALSE) {
    *out = (struct operand){.is_number = true,
                            .number = value->number,
                            .is_integer = value->kind != JSON_FLOAT,
                            .integer = value->kind == JSON_TRUE ? 1 : value->integer};
    if (value->kind == JSON_TRUE) out->number = 1;
    return true;
  }
  if (json_is(json_find(value, "$"), "float")) {
    const struct json *is = json_find(value, "is");
    *out = (struct operand){.is_number = true,
                            .number = json_is(is, "nan")   ? __builtin_nan("")
                                      : json_is(is, "inf") ? __builtin_inf()
                                                           : -__builtin_inf()};
    return true;
  }
  if (tensor && tensor->kind == OBJECT_TENSOR)
    *out = (struct operand){.data = tensor->data, .nbytes = tensor->nbytes, .type = tensor->type};
  else if (part && json_is(json_find(value, "$"), "array") && dtype && dtype->kind == JSON_TEXT)
    *out = (struct operand){
        .data = (void *)part->data, .nbytes = part->size, .type = element_type(dtype->text, dtype->size)};
  else
    return wrong(&call->failure, "argument-type", "an argument is neither a tensor nor a number");
  return true;
}

/* The operands of a program, one per parameter, from the values of a call, one for each that is no descriptor. */
static struct operand *operands_of(struct call *call, const struct container *file, const struct json *const *values,
                                   uint32_t count) {
  uint32_t wanted = 0, at = 0;
  for (uint32_t i = 0; i < file->count; i++) wanted += file->parameters[i].role != ROLE_DESCRIPTOR;
  if (wanted != count)
    return wrong(&call->failure, "argument-count", "%s takes %u arguments, %u given",
                 file->kernel[0] ? file->kernel : "the program", wanted, count),
           NULL;
  struct operand *operands = calloc(file->count + 1, sizeof *operands);
  for (uint32_t i = 0; operands && i < file->count; i++) {
    if (file->parameters[i].role == ROLE_DESCRIPTOR) continue;
    if (!operand_of(call, values[at++], &operands[i])) return free(operands), NULL;
  }
  if (!operands) wrong(&call->failure, "buf-alloc-fail", "there is no memory for a call");
  return operands;
}

/* Runs with operands, which are freed; with `run` given that is all, and outputs are stored. */
static bool run_operands(struct call *call, struct module *module, struct operand *operands, double seconds,
                         struct run *run) {
  struct made_job *job;
  struct watch watch = watch_of(call->session);
  return program_fill(&module->program, operands, call->session->quota.memory, &job, &call->failure) &&
         program_run(&module->program, job, seconds, &watch, run, &call->failure) &&
         program_store(&module->program, job, operands, &call->failure);
}

bool run_module(struct call *call, struct module *module, uint32_t first) {
  struct operand *operands =
      operands_of(call, &module->program.container, call->arguments + first, call->count - first);
  struct run run = {0};
  bool done = operands && run_operands(call, module, operands, 0, &run);
  for (size_t i = 0; i < run.printed.size; i++) /* on whose terminal this is, nothing happens but words */
    if ((unsigned char)run.printed.data[i] >= 127 ||
        (run.printed.data[i] < ' ' && !strchr("\t\n", run.printed.data[i])))
      run.printed.data[i] = '?';
  write_out(2, run.printed.data ? run.printed.data : "", run.printed.size);
  free(run.printed.data);
  free(operands);
  return done;
}

static uint32_t values_of(const struct json *list, const struct json **out) {
  uint32_t count = 0;
  for (const struct json *item = list->first; item && count < MOST_ARGUMENTS; item = item->next) out[count++] = item;
  return count;
}

static double seconds_of(const struct call *call, uint32_t at) {
  const struct json *value = call->count > at ? call->arguments[at] : NULL;
  return value && (value->kind == JSON_INTEGER || value->kind == JSON_FLOAT) ? value->number : 0;
}

/* The contents of some arguments after a run: null for those that live here. */
static bool answer_contents(struct call *call, const struct json *arguments, const struct json *wanted) {
  const struct json *values[MOST_ARGUMENTS];
  uint32_t count = values_of(arguments, values);
  text_put(&call->result, "[");
  for (const struct json *item = wanted->first; item; item = item->next) {
    if (item->kind != JSON_INTEGER || item->integer < 0 || item->integer >= count)
      return wrong(&call->failure, "rpc-call", "an output that is no argument");
    const struct json *value = values[item->integer];
    const struct part *part = argument_part(call, value);
    const struct json *dtype = json_find(value, "dtype"), *shape = json_find(value, "shape");
    uint64_t sizes[MOST_RANK];
    uint32_t rank = 0;
    if (!part || !dtype || dtype->kind != JSON_TEXT || dtype->size > 20 || !shape || shape->kind != JSON_LIST ||
        shape->size > MOST_RANK) {
      text_put(&call->result, "null");
    } else {
      char name[24] = "";
      memcpy(name, dtype->text, dtype->size);
      for (const struct json *size = shape->first; size; size = size->next) sizes[rank++] = (uint64_t)size->integer;
      if (!answer_array(call, &call->result, part->data, part->size, name, sizes, rank)) return false;
    }
    if (item->next) text_put(&call->result, ",");
  }
  text_put(&call->result, "]");
  return true;
}

/* [module, arguments, which of them to give back, seconds, record]: [seconds, what was printed, contents, null] */
static bool call_program(struct call *call) {
  struct module *module = module_argument(call)->module;
  const struct json *values[MOST_ARGUMENTS];
  uint32_t count = values_of(call->arguments[1], values);
  if (call->count > 4 && call->arguments[4]->kind == JSON_TRUE)
    return wrong(&call->failure, "rpc-call", "this server records nothing");
  struct operand *operands = operands_of(call, &module->program.container, values, count);
  struct run run = {0};
  bool done = operands && run_operands(call, module, operands, seconds_of(call, 3), &run);
  if (done) {
    text_print(&call->result, "[%.9g,", run.seconds);
    done = answer_printed(call, &run.printed);
    text_put(&call->result, ",");
    done = done && answer_contents(call, call->arguments[1], call->arguments[2]);
    text_put(&call->result, ",null]");
  }
  free(run.printed.data);
  free(operands);
  return done;
}

/* -- runs with tensors in the driver's order */

static const struct json *item_of(const struct json *list, uint32_t at) {
  const struct json *item = list && list->kind == JSON_LIST ? list->first : NULL;
  while (item && at--) item = item->next;
  return item;
}

/* Options of a run: an item of a dict in them, by the name of a parameter. */
static const struct json *option(const struct call *call, const char *table, const char *name) {
  const struct json *found = json_find(json_find(call->arguments[3], "items"), table);
  return json_find(json_find(found, "items") ? json_find(found, "items") : found, name);
}

/* Bytes of a tensor whose size was left open, from the shape that is given for it. */
static uint64_t open_bytes(const struct call *call, const struct parameter *p) {
  const struct json *shape = option(call, "shapes", p->name);
  uint64_t bytes = p->type->size;
  for (const struct json *item = shape && shape->kind == JSON_LIST ? shape->first : NULL; item; item = item->next)
    bytes = item->kind == JSON_INTEGER && item->integer >= 0 && bytes <= 3u << 30
                ? bytes * ((uint64_t)item->integer & 0xffffffff)
                : 4ull << 30;
  return shape ? bytes : 0;
}

static bool run_operand(struct call *call, const struct parameter *p, struct operand *out) {
  const struct json *value = p->role == ROLE_SCALAR ? option(call, "values", p->name)
                             : p->role <= ROLE_OUTPUT
                                 ? item_of(call->arguments[p->role == ROLE_INPUT ? 1 : 2], p->index)
                                 : NULL;
  out->is_absent = p->role == ROLE_CONSTANT;
  if (p->role == ROLE_CONSTANT || p->role == ROLE_DESCRIPTOR) return true;
  if (value && value->kind != JSON_NULL && !operand_of(call, value, out)) return false;
  if (value && value->kind != JSON_NULL) return true;
  if (p->role != ROLE_OUTPUT) return wrong(&call->failure, "no-input", "'%s' is missing", p->name);
  *out = (struct operand){.is_absent = true, .nbytes = p->nbytes ? p->nbytes : open_bytes(call, p)};
  return true;
}

/* An output of a run as a value, in the message while there is room, else as a tensor that is kept here. */
static bool answer_output(struct call *call, struct made_job *job, const struct parameter *p, uint64_t nbytes,
                          uint64_t *room) {
  struct driver *driver = call->session->driver;
  bool is_sent = nbytes <= *room && call->owned_count < MOST_BODIES;
  if (!is_sent && !has_room(call, nbytes)) return false;
  struct storage *storage = calloc(1, sizeof *storage + nbytes + 1);
  if (!storage) return wrong(&call->failure, "rpc-quota", "there is no memory for an output");
  aipu_status_t status =
      nbytes ? driver->get_tensor(driver->context, job->job, AIPU_TENSOR_TYPE_OUTPUT, p->index, storage->data)
             : AIPU_STATUS_SUCCESS;
  if (status)
    return free(storage),
           wrong(&call->failure, "rpc-driver", "the driver gives no output: status %#x", (unsigned)status);
  if (is_sent) {
    *room -= nbytes;
    call->owned[call->owned_count++] = storage;
    return answer_array(call, &call->result, storage->data, nbytes, "uint8", &nbytes, 1);
  }
  struct object kept = {.kind = OBJECT_TENSOR,
                        .storage = storage,
                        .data = storage->data,
                        .nbytes = nbytes,
                        .shape = {nbytes},
                        .rank = 1,
                        .device = {1, 0},
                        .type = element_type("uint8", 5),
                        .dtype = "uint8"};
  storage->users = 1;
  storage->nbytes = nbytes;
  call->session->taken += nbytes;
  if (answer_object(call, &call->result, &kept)) return true;
  storage_end(call->session, storage);
  return false;
}

/* [module, inputs, what outputs hold before, options]: [seconds, what was printed, outputs] */
static bool run_program(struct call *call) {
  struct module *module = module_argument(call)->module;
  const struct container *file = &module->program.container;
  struct operand *operands = calloc(file->count + 1, sizeof *operands);
  struct run run = {0};
  struct made_job *job;
  struct watch watch = watch_of(call->session);
  uint64_t room = PIECE;
  const struct json *limit = json_find(json_find(call->arguments[3], "items"), "timeout");
  bool done = operands != NULL || wrong(&call->failure, "buf-alloc-fail", "there is no memory for a run");
  for (uint32_t i = 0; done && i < file->count; i++) done = run_operand(call, &file->parameters[i], &operands[i]);
  done = done && program_fill(&module->program, operands, call->session->quota.memory, &job, &call->failure) &&
         program_run(&module->program, job, limit ? limit->number : 0, &watch, &run, &call->failure);
  text_print(&call->result, "[%.9g,", run.seconds);
  done = done && answer_printed(call, &run.printed);
  text_put(&call->result, ",[");
  bool is_first = true;
  for (uint32_t k = 0; done && k < MOST_PARAMETERS; k++)
    for (uint32_t i = 0; done && i < file->count; i++) {
      if (file->parameters[i].role != ROLE_OUTPUT || file->parameters[i].index != k) continue;
      if (!is_first) text_put(&call->result, ",");
      is_first = false;
      done = answer_output(call, job, &file->parameters[i], operands[i].nbytes, &room);
    }
  text_put(&call->result, "]]");
  free(run.printed.data);
  free(operands);
  return done;
}

/* -- measuring: groups of runs, as `Plan` in Python */

struct plan {
  double number, repeat, least_ms, zeros, pause_ms, between;
};

static double planned(const struct json *plan, const char *name, double usual) {
  const struct json *value = json_find(json_find(plan, "items"), name);
  return value && (value->kind == JSON_INTEGER || value->kind == JSON_FLOAT) ? value->number : usual;
}

/* Runs a job `number` times; seconds by the clock, and those that the driver was busy. */
static bool group(struct call *call, struct module *module, struct made_job *job, double number, double *seconds,
                  struct run *run) {
  struct watch watch = watch_of(call->session);
  double start = now();
  run->seconds = 0;
  for (double i = 0; i < number; i++)
    if (!program_run(&module->program, job, 0, &watch, run, &call->failure)) return false;
  *seconds = now() - start;
  return true;
}

/* Measures runs of a job; the times of the groups go to two lists. */
static bool measure(struct call *call, struct module *module, struct made_job *job, const struct json *given,
                    struct text *groups, struct text *busy) {
  struct plan plan = {planned(given, "number", 10),
                      planned(given, "repeat", 1),
                      planned(given, "min_repeat_ms", 0),
                      planned(given, "limit_zero_time_iterations", 100),
                      planned(given, "cooldown_interval_ms", 0),
                      planned(given, "repeats_to_cooldown", 1)};
  struct run run = {0};
  double seconds, number = plan.number;
  if (!(plan.number >= 1 && plan.number <= 1e9 && plan.repeat >= 1 && plan.repeat <= 1e5 && plan.between >= 1 &&
        plan.between <= 1e9))
    return wrong(&call->failure, "benchmark", "number, repeat and repeats_to_cooldown are at least 1, and no millions");
  bool done = group(call, module, job, 1, &seconds, &run);
  for (double i = 0; done && i < plan.repeat; i++) {
    for (double tries = 0; done && tries <= plan.zeros; tries++) {
      done = group(call, module, job, number, &seconds, &run);
      if (seconds * 1e3 >= plan.least_ms && (seconds > 0 || plan.least_ms == 0)) break;
      double wanted = seconds > 0 ? plan.least_ms / (seconds * 1e3 / number) + 1 : 0, grown = number * 1.618 + 1;
      number = (double)(int64_t)(wanted > 1e9 ? 1e9 : wanted > grown ? wanted : grown);
    }
    text_print(groups, "%s%.9g", i ? "," : "", seconds / number);
    text_print(busy, "%s%.9g", i ? "," : "", run.seconds / number);
    if (done && plan.pause_ms > 0 && ((int64_t)i + 1) % (int64_t)plan.between == 0)
      done = wait_for_seconds(call, plan.pause_ms / 1000);
  }
  free(run.printed.data);
  return done;
}

static bool fill_and_measure(struct call *call, struct module *module, struct operand *operands,
                             const struct json *plan, struct text *groups, struct text *busy) {
  struct made_job *job;
  return operands && program_fill(&module->program, operands, call->session->quota.memory, &job, &call->failure) &&
         measure(call, module, job, plan, groups, busy) &&
         program_store(&module->program, job, operands, &call->failure);
}

/* [module, arguments, which of them to give back, plan]: [groups, of them busy, contents] */
static bool time_program(struct call *call) {
  struct module *module = module_argument(call)->module;
  const struct json *values[MOST_ARGUMENTS];
  uint32_t count = values_of(call->arguments[1], values);
  struct operand *operands = operands_of(call, &module->program.container, values, count);
  struct text groups = {0}, busy = {0};
  bool done = fill_and_measure(call, module, operands, call->arguments[3], &groups, &busy);
  if (done) {
    text_put(&call->result, "[[");
    text_add(&call->result, groups.data, groups.size);
    text_put(&call->result, "],[");
    text_add(&call->result, busy.data, busy.size);
    text_put(&call->result, "],");
    done = answer_contents(call, call->arguments[1], call->arguments[2]);
    text_put(&call->result, "]");
  }
  free(groups.data);
  free(busy.data);
  free(operands);
  return done;
}

/* [module, function, device, plan, arguments ...]: seconds of the groups */
static bool time_function(struct call *call) {
  struct module *module = module_argument(call)->module;
  if (!is_function(module, call->arguments[1]))
    return wrong(&call->failure, "no-function", "the module has no such function");
  if (planned(call->arguments[3], "cache_flush_bytes", 0) != 0 ||
      (json_find(json_find(call->arguments[3], "items"), "f_preproc") &&
       json_find(json_find(call->arguments[3], "items"), "f_preproc")->size))
    return wrong(&call->failure, "rpc-call", "this server flushes no caches, and calls nothing before");
  struct operand *operands = operands_of(call, &module->program.container, call->arguments + 4, call->count - 4);
  struct text groups = {0}, busy = {0};
  bool done = fill_and_measure(call, module, operands, call->arguments[3], &groups, &busy);
  text_put(&call->result, "[");
  text_add(&call->result, groups.data, groups.size);
  text_put(&call->result, "]");
  free(groups.data);
  free(busy.data);
  free(operands);
  return done;
}

const struct builtin PROGRAM_BUILTINS[] = {{"module.load", "s", load},
                                           {"module.function", "MsB", find_function},
                                           {"module.imports", "M", no_imports},
                                           {"module.import", "M*", no_import},
                                           {"module.source", "Ms", no_text},
                                           {"module.time", "MsDd*", time_function},
                                           {"program.call", "Mll*", call_program},
                                           {"program.time", "Mlld", time_program},
                                           {"program.run", "Mlld", run_program},
                                           {NULL, NULL, NULL}};
