/* The server in C: a greeting (first byte odd), or the messages of a client who is known, on a driver that does
 * nothing. */
#include "server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int mkdir(const char *, uint32_t);

void write_out(int file, const char *text, size_t size) { (void)file, (void)text, (void)size; }

/* -- a driver that has the sizes of the file it was given last */

static struct container loaded;

static aipu_status_t init_context(aipu_ctx_handle_t **context) { return *context = NULL, 0; }
static aipu_status_t deinit_context(const aipu_ctx_handle_t *context) { return context != NULL; }
static aipu_status_t get_error_message(const aipu_ctx_handle_t *context, aipu_status_t status, const char **text) {
  (void)context, (void)status;
  return *text = "no", 0;
}
static aipu_status_t config_global(const aipu_ctx_handle_t *context, uint64_t types, void *config) {
  (void)context, (void)types, (void)config;
  return 0;
}
static aipu_status_t load_graph_helper(const aipu_ctx_handle_t *context, const char *data, uint32_t size,
                                       uint64_t *graph, aipu_load_graph_cfg_t *config) {
  struct failure failure;
  uint8_t *copy = malloc(size + 1);
  (void)context, (void)config;
  memcpy(copy, data, size);
  container_free(&loaded);
  loaded = (struct container){0};
  bool good = container_read(&loaded, copy, size, &failure);
  if (!good) {
    loaded = (struct container){0};
    free(copy);
  }
  *graph = 1ull << 32;
  return good ? 0 : AIPU_STATUS_ERROR_INVALID_GBIN;
}
static aipu_status_t unload_graph(const aipu_ctx_handle_t *context, uint64_t graph) {
  return context != NULL || !graph;
}
static aipu_status_t create_job(const aipu_ctx_handle_t *context, uint64_t graph, uint64_t *job,
                                aipu_create_job_cfg_t *config) {
  (void)context, (void)config;
  return *job = graph + 1, 0;
}
static aipu_status_t finish_job(const aipu_ctx_handle_t *context, uint64_t job, int32_t timeout) {
  (void)context, (void)timeout;
  return job % 7 ? 0 : AIPU_STATUS_ERROR_JOB_EXCEPTION;
}
static aipu_status_t get_tensor_count(const aipu_ctx_handle_t *context, uint64_t job, aipu_tensor_type_t type,
                                      uint32_t *count) {
  (void)context, (void)job, (void)type;
  return *count = loaded.count, 0;
}

/* As many bytes as the driver copies; more than the caller has is what the sanitizer finds. */
static uint32_t bytes_of(aipu_tensor_type_t type, uint32_t tensor) {
  for (uint32_t i = 0; i < loaded.count; i++)
    if (loaded.parameters[i].role == (enum role)type && loaded.parameters[i].index == tensor)
      return (uint32_t)loaded.parameters[i].nbytes;
  return 0;
}
static aipu_status_t get_tensor_descriptor(const aipu_ctx_handle_t *context, uint64_t job, aipu_tensor_type_t type,
                                           uint32_t tensor, aipu_tensor_desc_t *out) {
  (void)context, (void)job;
  return *out = (aipu_tensor_desc_t){.size = bytes_of(type, tensor)}, 0;
}
static aipu_status_t read_bytes(const void *data, uint32_t size) {
  uint8_t sum = 0;
  for (uint32_t i = 0; i < size; i++) sum = (uint8_t)(sum + ((const volatile uint8_t *)data)[i]);
  return (sum & 0) != 0;
}
static aipu_status_t load_tensor(const aipu_ctx_handle_t *context, uint64_t job, uint32_t tensor, const void *data) {
  (void)context, (void)job;
  return read_bytes(data, bytes_of(AIPU_TENSOR_TYPE_INPUT, tensor));
}
static aipu_status_t load_output_tensor(const aipu_ctx_handle_t *context, uint64_t job, uint32_t tensor,
                                        const void *data) {
  (void)context, (void)job;
  return read_bytes(data, bytes_of(AIPU_TENSOR_TYPE_OUTPUT, tensor));
}
static aipu_status_t get_tensor(const aipu_ctx_handle_t *context, uint64_t job, aipu_tensor_type_t type,
                                uint32_t tensor, void *data) {
  (void)context, (void)job;
  memset(data, 1, bytes_of(type, tensor));
  return 0;
}
static aipu_status_t rewrite_rodata(const aipu_ctx_handle_t *context, uint64_t job, uint32_t offset, uint32_t value) {
  (void)context, (void)job, (void)value;
  return offset % 4;
}

/* -- the other side */

struct pipe {
  int socket;
  const uint8_t *data;
  size_t size;
};

/* Sends the input, and takes all that comes. */
static void *talk(void *argument) {
  struct pipe *pipe = argument;
  uint8_t taken[4096];
  struct pollfd look = {.fd = pipe->socket};
  for (bool open = true; open;) {
    look.events = (short)(POLLIN | (pipe->size ? POLLOUT : 0));
    if (poll(&look, 1, 1000) <= 0) break;
    if (look.revents & POLLOUT && pipe->size) {
      ssize_t n = send(pipe->socket, pipe->data, pipe->size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) pipe->data += n, pipe->size -= (size_t)n;
    }
    if (look.revents & (POLLIN | POLLHUP | POLLERR)) open = recv(pipe->socket, taken, sizeof taken, MSG_DONTWAIT) > 0;
  }
  return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct server server = {.options = {.key = ""},
                                 .tokens = {.text = {"0123456789012345678901234567890123456789"}, .count = 1}};
  static double clock;
  int ends[2];
  pthread_t thread;
  const char *folder = "fuzz-folder";
#define X(name, parameters) server.driver.name = name;
  DRIVER_FUNCTIONS(X)
#undef X
  if (!size || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 0;
  struct pipe pipe = {ends[1], data + 1, size - 1};
  pthread_create(&thread, NULL, talk, &pipe);
  struct session session = {.channel = {.socket = ends[0], .greeting = data[0] & 1, .stall = 0.02},
                            .driver = &server.driver,
                            .clock = &clock,
                            .quota = {.memory = 1 << 20, .disk = 1 << 16, .call_seconds = 0.01, .idle_seconds = 0.001},
                            .end = now() + 1};
  struct greeted greeted;
  mkdir(folder, 0700);
  if (data[0] & 1) {
    greet(&session.channel, &server, now() + 0.002, &greeted);
  } else if (folder_open(&session.folder, folder, session.quota.disk)) {
    session_serve(&session);
    session_end(&session);
  }
  free(session.channel.buffer);
  close(ends[0]);
  pthread_join(thread, NULL);
  close(ends[1]);
  delete_tree(AT_FDCWD, folder);
  return 0;
}
