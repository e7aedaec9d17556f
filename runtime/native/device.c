#include "device.h"

#include "ranges.h"
#include "wire.h"

#ifndef COMPASS_ENGINE
#error "COMPASS_ENGINE is to name the simulator engine"
#endif
#define GRACE_MS 5000
#define LARGE (1u << 20) /* pages of memory that large are given back instead of being written */
#define START_LIMIT_MS 30000

static void stop_worker(struct device *device) {
  if (device->process > 0) {
    close(device->socket);
    kill(device->process, SIGKILL);
    waitpid(device->process, NULL, 0);
  }
  device->process = 0;
}

/* Reads exactly `size` bytes; false when the worker ends or is silent for `limit_ms`. */
static bool receive(struct device *device, void *data, size_t size, int limit_ms) {
  uint8_t *at = data;
  while (size) {
    struct pollfd wait = {.fd = device->socket, .events = POLLIN};
    int ready = poll(&wait, 1, limit_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    ssize_t n = recv(device->socket, at, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

/* Reads a reply; its locations are dropped, its message and what the kernel printed go where they belong. */
static bool receive_reply(struct device *device, struct reply *reply, char *message, size_t room, int limit_ms) {
  if (!receive(device, reply, sizeof *reply, limit_ms)) return false;
  size_t places = reply->locations * sizeof(struct location);
  char *tail = malloc(places + reply->message_size + reply->printf_size + 1);
  bool complete = tail && receive(device, tail, places + reply->message_size + reply->printf_size, limit_ms);
  if (complete) {
    snprintf(message, room, "%.*s", (int)reply->message_size, tail + places);
    const char *printed = tail + places + reply->message_size;
    for (size_t at = 0; at < reply->printf_size;) {
      ssize_t n = write(1, printed + at, reply->printf_size - at);
      if (n <= 0 && errno != EINTR) break;
      at += n > 0 ? (size_t)n : 0;
    }
  }
  free(tail);
  return complete;
}

static _Noreturn void become_worker(const char *engine, int socket, int shared_file) {
  char numbers[2][16];
  fcntl(socket, F_SETFD, 0);
  fcntl(shared_file, F_SETFD, 0);
  snprintf(numbers[0], sizeof numbers[0], "%d", socket);
  snprintf(numbers[1], sizeof numbers[1], "%d", shared_file);
  int nothing = open("/dev/null", O_RDWR);
  for (int stream = 0; stream < 3; stream++) dup2(nothing, stream);
  char *arguments[] = {(char *)engine, numbers[0], numbers[1], NULL}, *environment[] = {NULL};
  execve(engine, arguments, environment);
  _exit(127);
}

static aipu_status_t start_worker(struct device *device) {
  const char *engine = device->engine ? device->engine : COMPASS_ENGINE;
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM_CLOEXEC, 0, sockets) != 0)
    return fail(AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "no socket for the simulator: %s", strerror(errno));
  device->process = fork();
  if (device->process == 0) become_worker(engine, sockets[1], device->shared_file);
  close(sockets[1]);
  device->socket = sockets[0];
  struct reply hello;
  char message[256] = "it does not start";
  if (device->process > 0 && receive_reply(device, &hello, message, sizeof message, START_LIMIT_MS) &&
      hello.status == STATUS_DONE)
    return AIPU_STATUS_SUCCESS;
  if (device->process < 0) close(sockets[0]);
  stop_worker(device);
  return fail(AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "the simulator engine '%s' cannot be used: %s", engine, message);
}

static aipu_status_t make_memory(struct device *device) {
  device->shared_file = memfd_create("compass-device", MFD_CLOEXEC);
  if (device->shared_file < 0 || ftruncate(device->shared_file, WINDOW_HIGH) != 0)
    return fail(AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "no device memory: %s", strerror(errno));
  device->ranges = calloc(16, sizeof *device->ranges);
  void *memory = mmap(NULL, WINDOW_HIGH, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, device->shared_file, 0);
  if (memory == MAP_FAILED || !device->ranges) {
    close(device->shared_file);
    return fail(AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "no device memory: %s", strerror(errno));
  }
  device->memory = memory;
  device->range_room = 16;
  device->range_count = 3;
  device->ranges[0] = (struct range){WINDOW_LOW, ENGINE_LOW, false};
  device->ranges[1] = (struct range){ENGINE_LOW, ENGINE_HIGH, true};
  device->ranges[2] = (struct range){ENGINE_HIGH, WINDOW_HIGH, false};
  return AIPU_STATUS_SUCCESS;
}

aipu_status_t device_open(struct device *device) {
  pthread_mutex_lock(&device->running);
  aipu_status_t status = device->memory ? AIPU_STATUS_SUCCESS : make_memory(device);
  if (status == AIPU_STATUS_SUCCESS && !device->process) status = start_worker(device);
  pthread_mutex_unlock(&device->running);
  return status;
}

void device_close(struct device *device) {
  stop_worker(device);
  if (device->memory) {
    munmap(device->memory, WINDOW_HIGH);
    close(device->shared_file);
  }
  free(device->ranges);
  free(device->engine);
}

static bool insert_range(struct device *device, uint32_t at, struct range range) {
  if (device->range_count == device->range_room) {
    struct range *more = calloc(device->range_room * 2, sizeof *more);
    if (!more) return false;
    memcpy(more, device->ranges, device->range_count * sizeof *more);
    free(device->ranges);
    device->ranges = more;
    device->range_room *= 2;
  }
  for (uint32_t i = device->range_count; i > at; i--) device->ranges[i] = device->ranges[i - 1];
  device->ranges[at] = range;
  device->range_count++;
  return true;
}

uint32_t device_allocate(struct device *device, uint64_t size) {
  size = pages(size ? size : 1);
  uint32_t address = 0;
  pthread_mutex_lock(&device->allocator);
  for (uint32_t i = 0; i < device->range_count && !address; i++) {
    struct range *range = &device->ranges[i];
    if (range->used || range->end - range->start < size) continue;
    uint64_t start = range->start;
    struct range rest = {start + size, range->end, false};
    if (rest.start < rest.end && !insert_range(device, i + 1, rest)) break;
    device->ranges[i] = (struct range){start, start + size, true};
    address = (uint32_t)start;
  }
  pthread_mutex_unlock(&device->allocator);
  if (address && (size < LARGE || madvise(device->memory + address, size, MADV_REMOVE) != 0))
    memset(device->memory + address, 0, size);
  if (!address)
    fail(AIPU_STATUS_ERROR_BUF_ALLOC_FAIL, "the device has no %llu bytes left in one piece", (unsigned long long)size);
  return address;
}

static void join_ranges(struct device *device, uint32_t at) {
  if (at + 1 >= device->range_count || device->ranges[at].used || device->ranges[at + 1].used) return;
  device->ranges[at].end = device->ranges[at + 1].end;
  device->range_count--;
  for (uint32_t i = at + 1; i < device->range_count; i++) device->ranges[i] = device->ranges[i + 1];
}

void device_release(struct device *device, uint32_t address) {
  if (!address) return;
  pthread_mutex_lock(&device->allocator);
  for (uint32_t i = 0; i < device->range_count; i++)
    if (device->ranges[i].start == address && device->ranges[i].used) {
      device->ranges[i].used = false;
      join_ranges(device, i);
      if (i) join_ranges(device, i - 1);
      break;
    }
  pthread_mutex_unlock(&device->allocator);
}

static aipu_status_t fault_status(const struct reply *reply, const char *message) {
  switch (reply->fault) {
    case FAULT_TIMEOUT:
      return fail(AIPU_STATUS_ERROR_JOB_TIMEOUT, "the kernel did not finish within its time limit");
    case FAULT_DEADLOCK:
      return fail(AIPU_STATUS_ERROR_JOB_EXCEPTION, "TECs wait for ever at a barrier that the others do not reach");
    case FAULT_SIGNAL:
      return fail(AIPU_STATUS_ERROR_JOB_EXCEPTION, "TEC %u faulted (signal %u, address %#llx)", reply->tec,
                  reply->signal, (unsigned long long)reply->address);
    default:
      return fail(AIPU_STATUS_ERROR_JOB_EXCEPTION, "%s", message);
  }
}

static aipu_status_t run(struct device *device, const struct request *request) {
  struct reply reply;
  char message[256] = "";
  uint64_t wait_ms = request->time_limit / 1000000 + GRACE_MS;
  int limit_ms = wait_ms > 0x7fffffff ? -1 : (int)wait_ms;
  const uint8_t *bytes = (const uint8_t *)request;
  for (size_t sent = 0; sent < sizeof *request;) {
    ssize_t n = send(device->socket, bytes + sent, sizeof *request - sent, MSG_NOSIGNAL);
    if (n <= 0 && errno != EINTR) {
      stop_worker(device);
      return fail(AIPU_STATUS_ERROR_DEV_ABNORMAL, "the simulator process is gone: %s", strerror(errno));
    }
    sent += n > 0 ? (size_t)n : 0;
  }
  if (!receive_reply(device, &reply, message, sizeof message, limit_ms)) {
    stop_worker(device);
    return fail(AIPU_STATUS_ERROR_DEV_ABNORMAL, "the simulator process ended without a report");
  }
  if (reply.status == STATUS_DONE) return AIPU_STATUS_SUCCESS;
  if (reply.status == STATUS_REFUSED)
    return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "the simulator refuses the job: %s", message);
  stop_worker(device);
  return fault_status(&reply, message);
}

aipu_status_t device_run(struct device *device, uint32_t head, uint32_t count, bool x3, uint64_t limit) {
  struct request request = {.head = head, .count = count, .chain = x3 ? CHAIN_X3 : CHAIN_X2, .time_limit = limit};
  pthread_mutex_lock(&device->running);
  aipu_status_t status = device->process ? AIPU_STATUS_SUCCESS : start_worker(device);
  if (status == AIPU_STATUS_SUCCESS) status = run(device, &request);
  pthread_mutex_unlock(&device->running);
  return status;
}
