/* One session: its client's calls, objects and limits. */
#ifndef DAEMON_SESSION_H
#define DAEMON_SESSION_H

#include "driver.h"
#include "folder.h"

#define MOST_OBJECTS 65536u
#define MOST_ARGUMENTS 512u
#define MOST_BODIES 64
#define MOST_RANK 32u

struct quota {
  uint64_t memory, disk;
  double call_seconds, session_seconds, idle_seconds, stall_seconds, greeting_seconds;
  uint32_t sessions, strangers;
};

/* Memory of tensors, which views share; it counts until the last of them has gone. */
struct storage {
  uint64_t nbytes;
  uint32_t users;
  uint8_t data[];
};

enum object_kind { OBJECT_NONE, OBJECT_TENSOR, OBJECT_MODULE, OBJECT_FUNCTION };

struct object {
  enum object_kind kind;
  struct storage *storage; /* of a tensor; `data` lies in it */
  uint8_t *data;
  uint64_t nbytes, shape[MOST_RANK];
  uint32_t rank, device[2];
  const struct element_type *type;
  char dtype[24];
  struct module *module;         /* of a module, and of its function */
  const struct builtin *builtin; /* of a function of the server */
};

/* A loaded program, which the module and its functions hold. */
struct module {
  uint32_t users;
  struct program program;
};

struct session {
  struct channel channel;
  struct folder folder;
  struct driver *driver;
  struct quota quota;
  double end;             /* when the session ends */
  double seconds;         /* that it was given */
  double call_end;        /* when the call that runs ends */
  volatile double *clock; /* where the parent reads that */
  struct object *objects; /* by number, from 1 */
  uint32_t object_room;
  uint64_t taken; /* bytes of its tensors */
};

/* A call: its arguments, and the answer that is made. */
struct call {
  struct session *session;
  const struct json *arguments[MOST_ARGUMENTS];
  uint32_t count;
  struct part given[MOST_BODIES]; /* the bodies that came with it */
  uint32_t given_count;
  struct text result; /* JSON */
  struct part bodies[MOST_BODIES];
  uint32_t body_count;
  void *owned[MOST_BODIES]; /* memory that ends with the call */
  uint32_t owned_count;
  double seconds; /* that the client gives it; 0: none */
  struct failure failure;
};

/* A function that every session offers. `types`: what its arguments are, a letter each: s text, i integer, n number, b
 * bytes, l list, d dict, B bool, D device, T tensor, M module; a anything; `*`: any more. */
struct builtin {
  const char *name, *types;
  bool (*run)(struct call *);
};

extern const struct builtin BUILTINS[], PROGRAM_BUILTINS[];

/* Tells the client of a failure, of call 0 that the session ends; whether it was sent. */
bool session_complain(struct session *session, uint32_t number, const struct failure *failure);
/* Answers calls until the client goes, or time is over. */
void session_serve(struct session *session);
/* Frees what it holds. */
void session_end(struct session *session);

/* What arguments are; checked before a function runs. */
struct object *argument_object(struct call *call, const struct json *value);
struct name argument_name(const struct call *call, uint32_t at);
int64_t argument_integer(const struct call *call, uint32_t at);
/* The bytes of an argument that lies in a body; NULL where it is none. */
const struct part *argument_part(const struct call *call, const struct json *value);

/* Keeps an object for the client, and describes it in the result. */
bool answer_object(struct call *call, struct text *out, const struct object *object);
void object_end(struct session *session, struct object *object);
void storage_end(struct session *session, struct storage *storage);
/* Whether the session may take so many bytes more. */
bool has_room(struct call *call, uint64_t nbytes);
bool new_tensor(struct call *call, const struct json *shape, const struct json *dtype, uint32_t kind, uint32_t index,
                struct object *out);
/* An array as a value of the answer. */
bool answer_array(struct call *call, struct text *out, const void *data, uint64_t nbytes, const char *dtype,
                  const uint64_t *shape, uint32_t rank);
/* What runs printed as a value of the answer, which it belongs to then: a long one lies in a body. */
bool answer_printed(struct call *call, struct text *printed);
/* Waits, until the call is cancelled or late. */
bool wait_for_seconds(struct call *call, double seconds);
/* How the wait for a run looks at the client. */
struct watch watch_of(struct session *session);
bool run_module(struct call *call, struct module *module, uint32_t first);

#endif
