/* The worker process: started, given jobs, and its reports read. A kernel may have broken it, so that what it sends is
 * checked before it is used, and it must come in time. */
#include "device.h"
#include "lines.h"

#ifndef COMPASS_ENGINE
#error "COMPASS_ENGINE is to name the simulator engine"
#endif
#define GRACE_NS 5000000000ull
#define START_LIMIT_NS 30000000000ull
#define LOOK_NS 100000
#define MOST_TAIL (64u << 20) /* more than any honest report has behind it, in bytes */
#define MAX_LIMIT 0x3fffffffffffffffull

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.seconds * 1000000000u + (uint64_t)time.nanoseconds;
}

/* Ends a worker that is still ours: a program that waits for all its children may have taken its number away. */
static void end_process(int process) {
  if (waitpid(process, NULL, WNOHANG) == 0) kill(process, SIGKILL);
}

void worker_stop(struct device *device) {
  pthread_mutex_lock(&device->lock);
  if (device->process > 0) {
    close(device->socket);
    end_process(device->process);
    waitpid(device->process, NULL, 0);
  }
  device->process = 0;
  pthread_mutex_unlock(&device->lock);
}

void device_shut(struct device *device) {
  pthread_mutex_lock(&device->lock);
  device->shut = true;
  if (device->process > 0) end_process(device->process);
  pthread_mutex_unlock(&device->lock);
}

/* Returns when there is something to receive, or after a moment: most small jobs end before a thread that slept would be
 * awake. */
static void look_for_bytes(const struct device *device) {
  char next;
  uint64_t end = now() + LOOK_NS;
  while (recv(device->socket, &next, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && now() < end) sched_yield();
}

/* Reads exactly `size` bytes; false when the worker ends, or they are not there at time `end`. */
static bool receive(struct device *device, void *data, size_t size, uint64_t end) {
  uint8_t *at = data;
  while (size) {
    struct pollfd wait = {.fd = device->socket, .events = POLLIN};
    uint64_t time = now(), left = end > time ? (end - time) / 1000000 + 1 : 0;
    int ready = left ? poll(&wait, 1, left < 0x7fffffff ? (int)left : 0x7fffffff) : 0;
    if ((ready < 0 && errno == EINTR) || (!ready && left > 0x7fffffff)) continue;
    if (ready <= 0) return false;
    ssize_t n = recv(device->socket, at, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

static bool transmit(struct device *device, const void *data, size_t size) {
  const uint8_t *at = data;
  while (size) {
    ssize_t n = send(device->socket, at, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

/* Where the TEC of a fault stood, from the locations at `tail`; when it is not known, or no TEC is to blame, as of an
 * endless loop whose TECs were all at a barrier just then, where another one stood. */
static void find_place(const struct reply *reply, const char *tail, struct report *report) {
  for (uint32_t i = 0; i < reply->locations; i++) {
    struct location location;
    memcpy(&location, tail + i * sizeof location, sizeof location);
    if (location.pc == NO_PC || (report->has_pc && location.tec != reply->tec)) continue;
    report->has_pc = true;
    report->pc = location.pc;
  }
}

/* Reads a reply with its tails. False when it does not come or is damaged. */
static bool receive_report(struct device *device, bool record, struct reply *reply, struct report *report,
                           uint64_t end) {
  *report = (struct report){0};
  look_for_bytes(device);
  if (!receive(device, reply, sizeof *reply, end)) return false;
  uint64_t count = record && reply->status == STATUS_DONE ? reply->address : 0;
  uint64_t places = reply->locations * sizeof(struct location);
  uint64_t size = places + reply->message_size + reply->printf_size;
  if (size > MOST_TAIL || count > MOST_TAIL / sizeof(struct record)) return false;
  char *tail = malloc(size + 1);
  struct record *records = malloc(count * sizeof *records + 1);
  if (!tail || !records || !receive(device, tail, size, end) ||
      !receive(device, records, count * sizeof *records, end)) {
    free(tail);
    free(records);
    return false;
  }
  *report = (struct report){.tail = tail, .records = records, .record_count = (uint32_t)count,
                            .message = tail + places, .message_size = reply->message_size,
                            .printed = tail + places + reply->message_size, .printed_size = reply->printf_size,
                            .nanoseconds = reply->nanoseconds};
  find_place(reply, tail, report);
  return true;
}

void report_free(struct report *report) {
  free(report->tail);
  free(report->records);
  *report = (struct report){0};
}

/* Three quarters of the memory the host has free, as compass_sim counts it; 0 when the host does not say. */
static uint64_t host_memory_limit(void) {
  char text[1024];
  int file = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  text[n > 0 ? n : 0] = 0;
  const char *line = strstr(text, "MemAvailable:");
  uint64_t kibibytes = 0;
  for (line = line ? line + 13 : ""; *line == ' ' || (*line >= '0' && *line <= '9'); line++)
    if (*line != ' ') kibibytes = kibibytes * 10 + (uint64_t)(*line - '0');
  return kibibytes * 1024 / 4 * 3;
}

/* The engine's arguments: its file descriptors, then what it simulates (sim/engine/main.c). */
enum { SOCKET, SHARED_FILE, CORES, TECS, SHARED_BYTES, MEMORY_BYTES, ARGUMENTS };

static _Noreturn void become_worker(const char *engine, const uint64_t *numbers) {
  char texts[ARGUMENTS][24];
  char *arguments[ARGUMENTS + 2] = {(char *)engine}, *environment[] = {NULL};
  for (int i = 0; i < ARGUMENTS; i++) {
    snprintf(texts[i], sizeof texts[i], "%llu", (unsigned long long)numbers[i]);
    arguments[i + 1] = texts[i];
  }
  fcntl((int)numbers[SOCKET], F_SETFD, 0);
  fcntl((int)numbers[SHARED_FILE], F_SETFD, 0);
  int nothing = open("/dev/null", O_RDWR);
  for (int stream = 0; stream < 3; stream++) dup2(nothing, stream);
  execve(engine, arguments, environment);
  _exit(127);
}

/* The worker runs, but the system has no filter for its system calls. */
static void warn_unprotected(const struct report *report) {
  char text[400];
  int size = snprintf(text, sizeof text, "compass simulator: warning: %.*s; run only kernels that you trust\n",
                      report->message_size < 256 ? (int)report->message_size : 256, report->message);
  write_all(2, text, (size_t)size);
}

aipu_status_t worker_start(struct device *device, const struct shape *shape) {
  const char *engine = device->engine ? device->engine : COMPASS_ENGINE;
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM_CLOEXEC, 0, sockets) != 0)
    return fail(AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "no socket for the simulator: %s", strerror(errno));
  uint64_t numbers[ARGUMENTS] = {
      [SOCKET] = (uint64_t)sockets[1], [SHARED_FILE] = (uint64_t)device->shared_file, [CORES] = shape->cores,
      [TECS] = shape->tecs, [SHARED_BYTES] = shape->shared_bytes, [MEMORY_BYTES] = host_memory_limit()};
  int process = fork();
  if (process == 0) become_worker(engine, numbers);
  close(sockets[1]);
  if (process < 0) {
    close(sockets[0]);
    return fail(AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "no process for the simulator: %s", strerror(errno));
  }
  pthread_mutex_lock(&device->lock);
  device->socket = sockets[0];
  device->shape = *shape;
  device->process = process;
  if (device->shut) end_process(process);
  pthread_mutex_unlock(&device->lock);
  struct reply hello;
  struct report report;
  bool answers = receive_report(device, false, &hello, &report, now() + START_LIMIT_NS);
  if (!answers || hello.status != STATUS_DONE) {
    worker_stop(device);
    fail(AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "the simulator engine '%s' cannot be used: %.*s", engine,
         answers ? (int)report.message_size : 17, answers ? report.message : "it does not start");
    report_free(&report);
    return AIPU_STATUS_ERROR_OPEN_DEV_FAIL;
  }
  if (report.message_size) warn_unprotected(&report);
  report_free(&report);
  return AIPU_STATUS_SUCCESS;
}

static aipu_status_t fault_status(const struct reply *reply, const struct report *report) {
  switch (reply->fault) {
    case FAULT_TIMEOUT:
      return fail(AIPU_STATUS_ERROR_JOB_TIMEOUT, "the kernel did not finish within its time limit");
    case FAULT_DEADLOCK:
      return fail(AIPU_STATUS_ERROR_JOB_EXCEPTION, "TECs wait for ever at a barrier that the others do not reach");
    case FAULT_SIGNAL:
      return fail(AIPU_STATUS_ERROR_JOB_EXCEPTION, "TEC %u faulted (signal %u, address %#llx)", reply->tec,
                  reply->signal, (unsigned long long)reply->address);
    case FAULT_SYSTEM_CALL:
      return fail(AIPU_STATUS_ERROR_JOB_EXCEPTION, "TEC %u made the system call %llu, which kernels may not", reply->tec,
                  (unsigned long long)reply->address);
    default:
      return fail(AIPU_STATUS_ERROR_JOB_EXCEPTION, "%.*s", (int)report->message_size, report->message);
  }
}

aipu_status_t fail_in_kernel(aipu_status_t status, const struct report *report, const uint8_t *text, size_t size) {
  char place[512], why[256];
  if (status == AIPU_STATUS_SUCCESS || !report->has_pc || !line_in_text(text, size, report->pc, place, sizeof place))
    return status;
  snprintf(why, sizeof why, "%s", fail_text());
  return fail(status, "%s: %s", place, why);
}

static aipu_status_t run(struct device *device, const struct chain *chain, struct report *report) {
  uint64_t limit = chain->limit < MAX_LIMIT ? chain->limit : MAX_LIMIT;
  struct request request = {.head = chain->head, .count = chain->count, .chain = chain->x3 ? CHAIN_X3 : CHAIN_X2,
                            .options = chain->record ? WANT_RECORDS : 0, .time_limit = limit};
  struct reply reply;
  if (!transmit(device, &request, sizeof request) ||
      !receive_report(device, chain->record, &reply, report, now() + limit + GRACE_NS)) {
    worker_stop(device);
    return fail(AIPU_STATUS_ERROR_DEV_ABNORMAL, "the simulator process ended without a report, or sent a damaged one");
  }
  if (reply.status == STATUS_DONE) return AIPU_STATUS_SUCCESS;
  if (reply.status == STATUS_REFUSED)
    return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "the simulator refuses the job: %.*s", (int)report->message_size,
                report->message);
  worker_stop(device);
  return fault_status(&reply, report);
}

aipu_status_t device_run(struct device *device, const struct chain *chain, struct report *report) {
  *report = (struct report){0};
  pthread_mutex_lock(&device->running);
  if (memcmp(&device->shape, &chain->shape, sizeof device->shape) != 0) worker_stop(device);
  aipu_status_t status = device->process ? AIPU_STATUS_SUCCESS : worker_start(device, &chain->shape);
  if (status == AIPU_STATUS_SUCCESS) status = run(device, chain, report);
  pthread_mutex_unlock(&device->running);
  return status;
}

void write_all(int file, const char *text, size_t size) {
  while (size) {
    ssize_t n = write(file, text, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text += n;
    size -= (size_t)n;
  }
}
