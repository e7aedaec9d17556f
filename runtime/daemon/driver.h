/* Programs on the driver's library, which is loaded by its name: the vendor's, or libcompass_runtime with the
 * simulator. */
#ifndef DAEMON_DRIVER_H
#define DAEMON_DRIVER_H

#include "channel.h"
#include "compass_runtime.h"
#include "container.h"

#define MOST_PRINTED (4u << 20) /* bytes of what a run prints */
#define MOST_JOBS 4 /* of a session, for programs and sizes that were run before: each has a device's memory */

/* The driver's functions that are used, by their names. */
#define DRIVER_FUNCTIONS(X)                                                                                           \
  X(init_context, (aipu_ctx_handle_t **))                                                                             \
  X(deinit_context, (const aipu_ctx_handle_t *))                                                                      \
  X(get_error_message, (const aipu_ctx_handle_t *, aipu_status_t, const char **))                                     \
  X(config_global, (const aipu_ctx_handle_t *, uint64_t, void *))                                                     \
  X(load_graph_helper, (const aipu_ctx_handle_t *, const char *, uint32_t, uint64_t *, aipu_load_graph_cfg_t *))      \
  X(unload_graph, (const aipu_ctx_handle_t *, uint64_t))                                                              \
  X(create_job, (const aipu_ctx_handle_t *, uint64_t, uint64_t *, aipu_create_job_cfg_t *))                           \
  X(finish_job, (const aipu_ctx_handle_t *, uint64_t, int32_t))                                                       \
  X(get_tensor_count, (const aipu_ctx_handle_t *, uint64_t, aipu_tensor_type_t, uint32_t *))                          \
  X(get_tensor_descriptor, (const aipu_ctx_handle_t *, uint64_t, aipu_tensor_type_t, uint32_t, aipu_tensor_desc_t *)) \
  X(load_tensor, (const aipu_ctx_handle_t *, uint64_t, uint32_t, const void *))                                       \
  X(load_output_tensor, (const aipu_ctx_handle_t *, uint64_t, uint32_t, const void *))                                \
  X(get_tensor, (const aipu_ctx_handle_t *, uint64_t, aipu_tensor_type_t, uint32_t, void *))                          \
  X(rewrite_rodata, (const aipu_ctx_handle_t *, uint64_t, uint32_t, uint32_t))

struct made_job {
  struct program *program;
  uint64_t *sizes; /* bytes of each tensor, all ones: a null pointer */
  uint8_t *content;
  uint64_t graph, job;
};

struct driver {
  void *library;
  const char *(*detail)(void); /* libcompass_runtime's; NULL of another library */
  const char *engine;          /* path of the simulator's engine; NULL: the library's own */
  aipu_ctx_handle_t *context;
#define X(name, parameters) aipu_status_t(*name) parameters;
  DRIVER_FUNCTIONS(X)
#undef X
  struct made_job jobs[MOST_JOBS];
  int next;
};

/* What a run was given for a parameter: bytes, or a scalar; neither: a null pointer. */
struct operand {
  void *data;
  uint64_t nbytes;
  const struct element_type *type; /* of the elements that are given; NULL: any */
  bool is_number;
  bool is_absent; /* an output that begins with zeros, and is kept in `data` nevertheless */
  double number;
  bool is_integer;
  int64_t integer;
};

struct program {
  struct driver *driver;
  struct container container;
};

/* How a wait for a run ends it: called every so often with `context`; RECEIVED: it is cancelled, LOST: nobody wants it
 * any more. */
struct watch {
  enum receipt (*look)(void *context);
  void *context;
  double end; /* when the clock shows this, it is late */
};

struct run {
  double seconds;
  struct text printed;
};

/* Has what goes to stdout of this process go to a piece of memory that does not grow, where runs find what they
 * printed. */
bool catch_printed(void);
bool driver_open(struct driver *driver, const char *library, const char *engine, struct failure *failure);
/* In the process that uses it. */
bool driver_begin(struct driver *driver, struct failure *failure);
bool program_load(struct program *program, struct driver *driver, uint8_t *data, uint32_t size,
                  struct failure *failure);
void program_free(struct program *program);
/* The job for operands, one per parameter, which holds them then; `memory`: bytes that its tensors may have. */
bool program_fill(struct program *program, const struct operand *operands, uint64_t memory, struct made_job **job,
                  struct failure *failure);
/* Runs a job once; `seconds`: its own limit, 0: none. */
bool program_run(struct program *program, struct made_job *job, double seconds, const struct watch *watch,
                 struct run *run, struct failure *failure);
/* Copies the outputs back to the operands. */
bool program_store(struct program *program, struct made_job *job, struct operand *operands, struct failure *failure);

#endif
