/* The functions of a session on files and tensors, and those for trying whether it works. */
#include "session.h"

enum { CPU = 1, COMPASS = 60 }; /* codes of devices */

static bool nothing(struct call *call) { return text_put(&call->result, "null"), true; }

static bool info(struct call *call) {
  const struct quota *quota = &call->session->quota;
  text_put(&call->result, "{\"$\":\"dict\",\"items\":{\"software\":\"compass-rpcd " COMPASS_VERSION "\",\"host\":\"");
#ifdef __aarch64__
  text_put(&call->result, "aarch64-linux-gnu");
#else
  text_put(&call->result, "x86_64-linux-gnu");
#endif
  text_print(&call->result,
             "\",\"device\":\"%s\",\"extents\":false,\"rights\":[],\"memory\":%llu,\"disk\":%llu,\"call_seconds\":%g}}",
             call->session->driver->detail ? "simulator" : "driver", (unsigned long long)quota->memory,
             (unsigned long long)quota->disk, quota->call_seconds);
  return true;
}

bool wait_for_seconds(struct call *call, double seconds) {
  struct watch watch = watch_of(call->session);
  double end = now() + seconds;
  while (now() < end) {
    enum receipt why = watch.look(watch.context);
    if (why == LOST) _exit(0);
    if (why == RECEIVED) return wrong(&call->failure, "rpc-cancelled", "the call was cancelled");
    if (now() >= watch.end) return wrong(&call->failure, "rpc-deadline", "the call took too long and was stopped");
    struct timespec moment = {0, 10000000};
    nanosleep(&moment, NULL);
  }
  return true;
}

static bool wait_seconds(struct call *call) {
  return wait_for_seconds(call, call->arguments[0]->number) && nothing(call);
}

/* -- files */

static bool write_file(struct call *call) {
  const struct part *part = argument_part(call, call->arguments[2]);
  if (argument_integer(call, 1) < 0) return wrong(&call->failure, "rpc-call", "a file has no bytes before its first");
  return folder_write(&call->session->folder, argument_name(call, 0), (uint64_t)argument_integer(call, 1), part->data,
                      part->size, &call->failure) &&
         nothing(call);
}

static void raw(struct call *call, const void *data, size_t size) {
  text_put(&call->result, "{\"$\":\"raw\",\"body\":0}");
  call->bodies[call->body_count++] = (struct part){data, size};
}

/* Memory that ends with the call. */
static void *own(struct call *call, size_t size) {
  void *data = call->owned_count < MOST_BODIES ? malloc(size ? size : 1) : NULL;
  if (data) call->owned[call->owned_count++] = data;
  return data;
}

static bool read_file(struct call *call) {
  int64_t offset = argument_integer(call, 1), size = argument_integer(call, 2);
  if (offset < 0 || size < 0 || size > PIECE)
    return wrong(&call->failure, "rpc-call", "a piece of a file has at most %u bytes", PIECE);
  int file = folder_file(&call->session->folder, argument_name(call, 0), &call->failure);
  if (file < 0) return false;
  char *data = own(call, (size_t)size);
  ssize_t n = data ? pread(file, data, (size_t)size, offset) : -1;
  close(file);
  if (n < 0) return wrong(&call->failure, "rpc-file", "the file cannot be read");
  raw(call, data, (size_t)n);
  return true;
}

static bool remove_file(struct call *call) {
  return folder_remove(&call->session->folder, argument_name(call, 0), &call->failure) && nothing(call);
}

static bool names(struct call *call) {
  return folder_list(&call->session->folder, argument_name(call, 0), false, &call->result, &call->failure);
}

static bool files(struct call *call) {
  return folder_list(&call->session->folder, argument_name(call, 0), true, &call->result, &call->failure);
}

static bool path(struct call *call) {
  return folder_path(&call->session->folder, argument_name(call, 0), &call->result, &call->failure);
}

/* -- tensors */

/* One NPU, and the processor beside it; tensors of both lie in the same memory. */
static bool is_here(int64_t kind, int64_t index) { return (kind == CPU || kind == COMPASS) && !index; }

static bool empty(struct call *call) {
  struct object tensor;
  int64_t kind = argument_integer(call, 2), index = argument_integer(call, 3);
  if (!is_here(kind, index))
    return wrong(&call->failure, "no-device", "this server has the devices cpu(0) and compass(0)");
  if (!new_tensor(call, call->arguments[0], call->arguments[1], (uint32_t)kind, (uint32_t)index, &tensor) ||
      !has_room(call, tensor.nbytes))
    return false;
  tensor.storage = calloc(1, sizeof *tensor.storage + tensor.nbytes);
  if (!tensor.storage)
    return wrong(&call->failure, "rpc-quota", "there is no memory for a tensor of %llu bytes",
                 (unsigned long long)tensor.nbytes);
  tensor.storage->users = 1;
  tensor.storage->nbytes = tensor.nbytes;
  call->session->taken += tensor.nbytes;
  tensor.data = tensor.storage->data;
  if (answer_object(call, &call->result, &tensor)) return true;
  storage_end(call->session, tensor.storage);
  return false;
}

static bool lies_in(struct call *call, const struct object *tensor, int64_t offset, uint64_t size) {
  if (offset >= 0 && (uint64_t)offset <= tensor->nbytes && size <= tensor->nbytes - (uint64_t)offset) return true;
  return wrong(&call->failure, "rpc-call", "there are no %llu bytes at %lld in %llu", (unsigned long long)size,
               (long long)offset, (unsigned long long)tensor->nbytes);
}

static bool read_tensor(struct call *call) {
  const struct object *tensor = argument_object(call, call->arguments[0]);
  int64_t offset = argument_integer(call, 1), size = argument_integer(call, 2);
  if (size < 0 || size > PIECE) return wrong(&call->failure, "rpc-call", "a piece has at most %u bytes", PIECE);
  if (!lies_in(call, tensor, offset, (uint64_t)size)) return false;
  raw(call, tensor->data + offset, (size_t)size);
  return true;
}

static bool write_tensor(struct call *call) {
  const struct object *tensor = argument_object(call, call->arguments[0]);
  const struct part *part = argument_part(call, call->arguments[2]);
  int64_t offset = argument_integer(call, 1);
  if (!lies_in(call, tensor, offset, part->size)) return false;
  memcpy(tensor->data + offset, part->data, part->size);
  return nothing(call);
}

static bool copy(struct call *call) {
  const struct object *source = argument_object(call, call->arguments[0]),
                      *to = argument_object(call, call->arguments[1]);
  if (source->nbytes != to->nbytes || strcmp(source->dtype, to->dtype) != 0)
    return wrong(&call->failure, "tensor-shape",
                 "a tensor of %llu bytes cannot be copied to one of %llu, or their data types differ",
                 (unsigned long long)source->nbytes, (unsigned long long)to->nbytes);
  memmove(to->data, source->data, source->nbytes);
  return nothing(call);
}

static bool view(struct call *call) {
  const struct object *tensor = argument_object(call, call->arguments[0]);
  struct object made;
  int64_t offset = argument_integer(call, 3);
  if (!new_tensor(call, call->arguments[1], call->arguments[2], tensor->device[0], tensor->device[1], &made))
    return false;
  tensor = argument_object(call, call->arguments[0]);
  if (!lies_in(call, tensor, offset, made.nbytes)) return false;
  made.storage = tensor->storage;
  made.data = tensor->data + offset;
  if (!answer_object(call, &call->result, &made)) return false;
  made.storage->users++;
  return true;
}

/* -- devices */

static bool attribute(struct call *call) {
  const struct json *kind = json_find(call->arguments[0], "type"), *index = json_find(call->arguments[0], "index");
  if (!json_is(call->arguments[1], "exist")) return nothing(call);
  text_put(&call->result, is_here(kind->integer, index->integer) ? "true" : "false");
  return true;
}

/* -- functions for trying */

static bool echo(struct call *call) {
  for (uint32_t i = 0; i < call->count; i++)
    if (argument_object(call, call->arguments[i]))
      return wrong(&call->failure, "rpc-call", "objects are not sent back");
  text_value(&call->result, call->arguments[0]);
  for (uint32_t i = 0; i < call->given_count; i++) call->bodies[call->body_count++] = call->given[i];
  return true;
}

static bool add_one(struct call *call) {
  const struct json *value = call->arguments[0];
  if (value->kind == JSON_FLOAT)
    text_number(&call->result, value->number + 1);
  else
    text_print(&call->result, value->integer < 0 ? "%lld" : "%llu", (unsigned long long)value->integer + 1);
  return true;
}

static bool join(struct call *call) {
  struct text joined = {0};
  const struct json *value = call->arguments[1];
  struct name name = argument_name(call, 0);
  text_add(&joined, name.data, name.size);
  text_put(&joined, ":");
  if (value->kind == JSON_TEXT)
    text_add(&joined, value->text, value->size);
  else
    text_value(&joined, value);
  text_string(&call->result, joined.data, joined.size);
  call->result.failed = call->result.failed || joined.failed;
  free(joined.data);
  return true;
}

static bool fail_with(struct call *call) {
  struct name name = argument_name(call, 0);
  wrong(&call->failure, "", "%.*s", name.size < 500 ? (int)name.size : 500, name.data);
  call->failure.type = "ValueError";
  return false;
}

static bool find_function(struct call *call);

const struct builtin BUILTINS[] = {{"server.info", "", info},
                                   {"server.function", "s", find_function},
                                   {"server.nothing", "", nothing},
                                   {"server.wait", "n", wait_seconds},
                                   {"file.write", "sib", write_file},
                                   {"file.read", "sii", read_file},
                                   {"file.remove", "s", remove_file},
                                   {"file.names", "s", names},
                                   {"file.files", "s", files},
                                   {"file.path", "s", path},
                                   {"tensor.empty", "lsii", empty},
                                   {"tensor.read", "Tii", read_tensor},
                                   {"tensor.write", "Tib", write_tensor},
                                   {"tensor.copy", "TT", copy},
                                   {"tensor.view", "Tlsi", view},
                                   {"device.attribute", "Ds", attribute},
                                   {"device.sync", "D", nothing},
                                   {"rpc.test.echo", "a*", echo},
                                   {"rpc.test.addone", "n", add_one},
                                   {"rpc.test.strcat", "sa", join},
                                   {"rpc.test.except", "s", fail_with},
                                   {NULL, NULL, NULL}};

/* A function that clients may have as an object: those for trying. */
static bool find_function(struct call *call) {
  for (const struct builtin *at = BUILTINS; at->name; at++) {
    if (strncmp(at->name, "rpc.test.", 9) != 0 || !json_is(call->arguments[0], at->name)) continue;
    struct object found = {.kind = OBJECT_FUNCTION, .builtin = at};
    return answer_object(call, &call->result, &found);
  }
  return nothing(call);
}
