#include "session.h"

#define LONG_TEXT 65536u /* bytes of a text that lies in a body */

static bool body_number(const struct call *call, const struct json *value, uint32_t *number) {
  const struct json *body = json_find(value, "body");
  if (!body || body->kind != JSON_INTEGER || body->integer < 0 || body->integer >= call->given_count) return false;
  *number = (uint32_t)body->integer;
  return true;
}

const struct part *argument_part(const struct call *call, const struct json *value) {
  static const char *const kinds[] = {"raw", "bytes", "bytearray", "array", "text"};
  uint32_t number;
  for (int i = 0; i < 5; i++)
    if (json_is(json_find(value, "$"), kinds[i]))
      return body_number(call, value, &number) ? &call->given[number] : NULL;
  return NULL;
}

struct object *argument_object(struct call *call, const struct json *value) {
  const struct json *id = json_find(value, "id");
  if (!json_is(json_find(value, "$"), "yours") || !id || id->kind != JSON_INTEGER || id->integer < 1 ||
      id->integer > call->session->object_room)
    return NULL;
  struct object *found = &call->session->objects[id->integer - 1];
  return found->kind ? found : NULL;
}

struct name argument_name(const struct call *call, uint32_t at) {
  const struct json *value = call->arguments[at];
  return (struct name){value->text, value->size};
}

int64_t argument_integer(const struct call *call, uint32_t at) { return call->arguments[at]->integer; }

static bool is_device(const struct json *value) {
  const struct json *kind = json_find(value, "type"), *index = json_find(value, "index");
  return json_is(json_find(value, "$"), "device") && kind && kind->kind == JSON_INTEGER && kind->integer >= 0 &&
         kind->integer < 128 && index && index->kind == JSON_INTEGER && index->integer >= 0 && index->integer < 1 << 16;
}

static bool is_of_type(struct call *call, const struct json *value, char type) {
  const struct json *kind = json_find(value, "$");
  struct object *object = type == 'T' || type == 'M' ? argument_object(call, value) : NULL;
  switch (type) {
    case 's':
      return value->kind == JSON_TEXT;
    case 'i':
      return value->kind == JSON_INTEGER;
    case 'n':
      return value->kind == JSON_INTEGER || value->kind == JSON_FLOAT;
    case 'B':
      return value->kind == JSON_TRUE || value->kind == JSON_FALSE;
    case 'l':
      return value->kind == JSON_LIST;
    case 'd':
      return json_is(kind, "dict") && json_find(value, "items") && json_find(value, "items")->kind == JSON_DICT;
    case 'b':
      return (json_is(kind, "raw") || json_is(kind, "bytes") || json_is(kind, "bytearray")) &&
             argument_part(call, value);
    case 'D':
      return is_device(value);
    case 'T':
      return object && object->kind == OBJECT_TENSOR;
    case 'M':
      return object && object->kind == OBJECT_MODULE;
    default:
      return true;
  }
}

/* Whether a value is one of the protocol: what it says of bodies and objects exists. */
static bool is_value(struct call *call, const struct json *value) {
  const struct json *kind = json_find(value, "$");
  if (value->kind == JSON_LIST) {
    for (const struct json *item = value->first; item; item = item->next)
      if (!is_value(call, item)) return false;
    return true;
  }
  if (value->kind != JSON_DICT) return true;
  if (json_is(kind, "dict") && is_of_type(call, value, 'd')) {
    for (const struct json *item = json_find(value, "items")->first; item; item = item->next)
      if (!is_value(call, item)) return false;
    return true;
  }
  if (json_is(kind, "mine"))
    return wrong(&call->failure, "rpc-call",
                 "this server calls no functions of its clients: give it arrays and numbers, or use one in Python");
  const struct json *is = json_find(value, "is");
  if (json_is(kind, "float")) return json_is(is, "nan") || json_is(is, "inf") || json_is(is, "-inf");
  if (json_is(kind, "dtype")) return is && is->kind == JSON_TEXT;
  return argument_part(call, value) || argument_object(call, value) || is_device(value);
}

static bool no_value(struct call *call) {
  if (call->failure.code) return false; /* which says more */
  return wrong(&call->failure, "rpc-protocol",
               "the other side sent a damaged message: a value that is none, or an object that does not exist");
}

static bool check_arguments(struct call *call, const struct builtin *function) {
  uint32_t wanted = (uint32_t)strcspn(function->types, "*");
  for (uint32_t i = 0; i < call->count; i++)
    if (!is_value(call, call->arguments[i])) return no_value(call);
  bool good = call->count == wanted || (call->count > wanted && function->types[wanted] == '*');
  for (uint32_t i = 0; good && i < wanted; i++) good = is_of_type(call, call->arguments[i], function->types[i]);
  return good ||
         wrong(&call->failure, "rpc-call", "%s does not take these arguments (%s)", function->name, function->types);
}

static const struct builtin *find_builtin(const struct json *name) {
  const struct builtin *const tables[] = {BUILTINS, PROGRAM_BUILTINS};
  for (int t = 0; t < 2; t++)
    for (const struct builtin *at = tables[t]; at->name; at++)
      if (json_is(name, at->name)) return at;
  return NULL;
}

/* The function that a call names, run. */
static bool run(struct call *call, const struct json *function) {
  if (function && function->kind == JSON_TEXT) {
    const struct builtin *found = find_builtin(function);
    if (found) return check_arguments(call, found) && found->run(call);
    return wrong(&call->failure, "no-function", "the server offers no function '%.*s'",
                 (int)(function->size < 200 ? function->size : 200), function->text);
  }
  bool known = function && function->kind == JSON_INTEGER && function->integer >= 1 &&
               function->integer <= call->session->object_room;
  const struct object *object = known ? &call->session->objects[function->integer - 1] : NULL;
  if (!object || object->kind <= OBJECT_TENSOR)
    return wrong(&call->failure, "rpc-protocol",
                 "the other side sent a damaged message: a call of what is no function");
  if (object->builtin) return check_arguments(call, object->builtin) && object->builtin->run(call);
  for (uint32_t i = 0; i < call->count; i++)
    if (!is_value(call, call->arguments[i])) return no_value(call);
  bool done = run_module(call, object->module, 0);
  if (done) text_put(&call->result, "null");
  return done;
}

static bool read_bodies(struct call *call, const struct json *sizes, const struct frame *frame) {
  uint64_t at = 0;
  if (sizes && sizes->kind != JSON_LIST && sizes->kind != JSON_NULL) return false;
  for (const struct json *item = sizes ? sizes->first : NULL; item; item = item->next) {
    if (item->kind != JSON_INTEGER || item->integer < 0 || (uint64_t)item->integer > frame->body_size - at)
      return false;
    if (call->given_count == MOST_BODIES) return false;
    call->given[call->given_count++] = (struct part){frame->body + at, (size_t)item->integer};
    at += (uint64_t)item->integer;
  }
  return at == frame->body_size;
}

static void forget(struct session *session, const struct json *gone) {
  if (!gone || gone->kind != JSON_LIST) return;
  for (const struct json *item = gone->first; item; item = item->next)
    if (item->kind == JSON_INTEGER && item->integer >= 1 && item->integer <= session->object_room)
      object_end(session, &session->objects[item->integer - 1]);
}

/* Reads a call's head, and runs it. */
static bool perform(struct call *call, const struct json *head, const struct frame *frame) {
  struct session *session = call->session;
  const struct json *list = json_find(head, "v"), *seconds = json_find(head, "s");
  if (!head || head->kind != JSON_DICT)
    return wrong(&call->failure, "rpc-protocol", "the other side sent a damaged message: no head");
  forget(session, json_find(head, "gone"));
  if (!read_bodies(call, json_find(head, "bodies"), frame))
    return wrong(&call->failure, "rpc-protocol",
                 "the other side sent a damaged message: bodies of other sizes than it says");
  if (!list || list->kind != JSON_LIST || list->size > MOST_ARGUMENTS)
    return wrong(&call->failure, "rpc-protocol", "the other side sent a damaged message: a call without arguments");
  for (const struct json *item = list->first; item; item = item->next) call->arguments[call->count++] = item;
  double limit = session->quota.call_seconds;
  if (seconds && (seconds->kind == JSON_INTEGER || seconds->kind == JSON_FLOAT) && seconds->number > 0 &&
      seconds->number < limit)
    limit = seconds->number;
  session->call_end = now() + limit < session->end ? now() + limit : session->end;
  *session->clock = session->call_end;
  bool done = run(call, json_find(head, "f"));
  *session->clock = 0;
  size_t bodies = 0;
  for (uint32_t i = 0; i < call->body_count; i++) bodies += call->bodies[i].size;
  if (done && (call->result.failed || call->result.size > MOST_HEAD / 2 || bodies > MOST_BODY))
    return wrong(&call->failure, "limit-exceeded", "the answer is too large for a message");
  return done;
}

static void describe_failure(struct text *out, const struct failure *failure) {
  const struct {
    const char *key, *value;
  } fields[] = {{"{\"type\":", failure->type ? failure->type : "RPCError"},
                {",\"message\":", failure->message},
                {",\"code\":", failure->code ? failure->code : "rpc-call"},
                {",\"help\":", failure->help}};
  for (int i = 0; i < 4; i++) {
    text_put(out, fields[i].key);
    text_string(out, fields[i].value, strlen(fields[i].value));
  }
  text_put(out, ",\"notes\":[],\"trace\":\"\"}");
}

bool session_complain(struct session *session, uint32_t number, const struct failure *failure) {
  struct text text = {0};
  describe_failure(&text, failure);
  bool sent = channel_send(&session->channel, ERROR, number, &text, NULL, 0);
  free(text.data);
  return sent;
}

static void set_over(struct session *session, struct failure *failure) {
  wrong(failure, "session-over", "Your %gs session has expired, try to increase the \"session_timeout\" value.",
        session->seconds);
}

/* Sends what came of a call; false: the client has gone. */
static bool reply(struct call *call, uint32_t number, bool done) {
  struct text head = {0};
  if (!done) {
    if (now() >= call->session->end) set_over(call->session, &call->failure);
    return session_complain(call->session, number, &call->failure);
  }
  text_put(&head, "{\"v\":");
  text_add(&head, call->result.data, call->result.size);
  for (uint32_t i = 0; i < call->body_count; i++)
    text_print(&head, i ? ",%zu" : ",\"bodies\":[%zu", call->bodies[i].size);
  text_put(&head, call->body_count ? "]}" : "}");
  bool sent = channel_send(&call->session->channel, RESULT, number, &head, call->bodies, (int)call->body_count);
  free(head.data);
  return sent;
}

/* One call; false: the session ends. */
static bool answer(struct session *session, struct call *call, const struct frame *frame) {
  *call = (struct call){.session = session};
  struct json *head = json_parse(frame->head, frame->head_size);
  if (!head) return false;
  bool sent = reply(call, frame->call, perform(call, head, frame));
  free(head);
  free(call->result.data);
  for (uint32_t i = 0; i < call->owned_count; i++) free(call->owned[i]);
  return sent;
}

void session_serve(struct session *session) {
  struct failure failure;
  struct frame frame;
  struct call *call = malloc(sizeof *call);
  while (call) {
    double idle = now() + session->quota.idle_seconds;
    bool is_last = session->end <= idle;
    enum receipt receipt = channel_receive(&session->channel, is_last ? session->end : idle, &frame);
    if (receipt == QUIET) {
      if (is_last)
        set_over(session, &failure);
      else
        wrong(&failure, "rpc-idle", "nothing was asked for %g seconds: the session has ended",
              session->quota.idle_seconds);
      session_complain(session, 0, &failure);
    }
    if (receipt != RECEIVED) break;
    if (frame.kind == CANCEL) continue; /* of a call that had ended before */
    if (frame.kind != CALL || !answer(session, call, &frame)) break;
  }
  free(call);
}

static enum receipt look(void *context) { return channel_peek(&((struct session *)context)->channel); }

struct watch watch_of(struct session *session) {
  return (struct watch){.look = look, .context = session, .end = session->call_end};
}

/* -- objects */

static void module_end(struct module *module) {
  if (--module->users) return;
  program_free(&module->program);
  free(module);
}

void storage_end(struct session *session, struct storage *storage) {
  if (--storage->users) return;
  session->taken -= storage->nbytes;
  free(storage);
}

void object_end(struct session *session, struct object *object) {
  if (object->kind == OBJECT_TENSOR) {
    storage_end(session, object->storage);
  } else if (object->module) {
    module_end(object->module);
  }
  *object = (struct object){0};
}

void session_end(struct session *session) {
  for (uint32_t i = 0; i < session->object_room; i++) object_end(session, &session->objects[i]);
  free(session->objects);
  folder_close(&session->folder);
}

bool answer_object(struct call *call, struct text *out, const struct object *object) {
  struct session *session = call->session;
  uint32_t at = 0;
  while (at < session->object_room && session->objects[at].kind) at++;
  if (at == MOST_OBJECTS) return wrong(&call->failure, "rpc-quota", "a session may keep %u objects", MOST_OBJECTS);
  if (at == session->object_room) {
    uint32_t room = at ? at * 2 : 64;
    struct object *grown = realloc(session->objects, room * sizeof *grown);
    if (!grown) return wrong(&call->failure, "rpc-quota", "there is no memory for an object");
    memset(grown + at, 0, (room - at) * sizeof *grown);
    session->objects = grown;
    session->object_room = room;
  }
  session->objects[at] = *object;
  static const char *const kinds[] = {"", "tensor", "module", "function"};
  text_print(out, "{\"$\":\"mine\",\"id\":%u,\"kind\":\"%s\"", at + 1, kinds[object->kind]);
  if (object->kind == OBJECT_TENSOR) {
    text_put(out, ",\"shape\":[");
    for (uint32_t i = 0; i < object->rank; i++)
      text_print(out, "%s%llu", i ? "," : "", (unsigned long long)object->shape[i]);
    text_print(out, "],\"dtype\":\"%s\",\"device\":[%u,%u]", object->dtype, object->device[0], object->device[1]);
  } else if (object->kind == OBJECT_MODULE) {
    text_put(out, ",\"type\":\"compass.runtime.CompassModule\",\"entry\":\"__tvm_main__\"");
  }
  text_put(out, "}");
  return true;
}

/* Bytes of a shape, which goes to the object. */
static bool read_shape(struct call *call, const struct json *shape, struct object *out) {
  bool good = shape->size <= MOST_RANK;
  uint64_t bytes = out->type->size;
  out->rank = 0;
  for (const struct json *item = shape->first; good && item; item = item->next) {
    good = item->kind == JSON_INTEGER && item->integer >= 0 && item->integer < 1ll << 48;
    uint64_t size = good ? (uint64_t)item->integer : 0;
    out->shape[out->rank++] = size;
    bytes = size && bytes > (1ull << 48) / size ? 1ull << 48 : bytes * size;
  }
  for (uint32_t i = 0; i < out->rank; i++) bytes = out->shape[i] ? bytes : 0;
  out->nbytes = bytes;
  return good || wrong(&call->failure, "rpc-protocol", "the other side sent a damaged message: a shape that is none");
}

bool new_tensor(struct call *call, const struct json *shape, const struct json *dtype, uint32_t kind, uint32_t index,
                struct object *out) {
  *out =
      (struct object){.kind = OBJECT_TENSOR, .device = {kind, index}, .type = element_type(dtype->text, dtype->size)};
  if (!out->type || dtype->size >= sizeof out->dtype || strlen(out->type->name) != dtype->size)
    return wrong(&call->failure, "rpc-protocol", "the other side sent a damaged message: a data type that is none");
  memcpy(out->dtype, dtype->text, dtype->size);
  return read_shape(call, shape, out);
}

bool has_room(struct call *call, uint64_t nbytes) {
  const struct session *session = call->session;
  return session->taken + nbytes <= session->quota.memory ||
         wrong(&call->failure, "rpc-quota",
               "the tensors of a session may have %llu bytes; with %llu more they would have %llu",
               (unsigned long long)session->quota.memory, (unsigned long long)nbytes,
               (unsigned long long)(session->taken + nbytes));
}

bool answer_array(struct call *call, struct text *out, const void *data, uint64_t nbytes, const char *dtype,
                  const uint64_t *shape, uint32_t rank) {
  if (call->body_count == MOST_BODIES) return wrong(&call->failure, "limit-exceeded", "the answer has too many arrays");
  text_print(out, "{\"$\":\"array\",\"body\":%u,\"dtype\":\"%s\",\"shape\":[", call->body_count, dtype);
  for (uint32_t i = 0; i < rank; i++) text_print(out, "%s%llu", i ? "," : "", (unsigned long long)shape[i]);
  text_put(out, "]}");
  call->bodies[call->body_count++] = (struct part){data, nbytes};
  return true;
}

bool answer_printed(struct call *call, struct text *printed) {
  if (printed->size <= LONG_TEXT)
    return text_string(&call->result, printed->data ? printed->data : "", printed->size), true;
  for (size_t i = 0, bytes; i < printed->size; i += bytes ? bytes : 1)
    if (!(bytes = utf8_size(printed->data + i, printed->data + printed->size))) printed->data[i] = '?';
  if (call->body_count == MOST_BODIES || call->owned_count == MOST_BODIES)
    return wrong(&call->failure, "limit-exceeded", "the answer has too many arrays");
  text_print(&call->result, "{\"$\":\"text\",\"body\":%u}", call->body_count);
  call->bodies[call->body_count++] = (struct part){printed->data, printed->size};
  call->owned[call->owned_count++] = printed->data;
  *printed = (struct text){0};
  return true;
}
