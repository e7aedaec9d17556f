/* The worker process: started, given jobs, and its reports read. A kernel may have broken it, so that what it sends is
 * checked before it is used, and it must come in time. */
#include "aiff_names.h"
#include "device.h"
#include "lines.h"
#include "ranges.h"

#ifndef COMPASS_ENGINE
#error "COMPASS_ENGINE is to name the simulator engine"
#endif
#define GRACE_NS 2000000000ull /* to say where the TECs of a job stand that is out of time */
#define START_LIMIT_NS 30000000000ull
#define LOOK_NS 100000
#define MOST_TAIL (64u << 20) /* more than any honest report has behind it, in bytes */
#define MAX_LIMIT 0x3fffffffffffffffull
#define FIRST_OWN 10 /* our descriptors begin here */

static const char TOO_LONG[] = "the kernel did not finish within its time limit";
enum receipt { COMPLETE, LATE, BROKEN };

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.seconds * 1000000000u + (uint64_t)time.nanoseconds;
}

/* Ends a worker that is still ours: a program that waits for all its children may have taken its number away. */
static void end_process(int process) {
  if (waitpid(process, NULL, WNOHANG) == 0) kill(process, SIGKILL);
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

/* Reads exactly `size` bytes, unless the worker ends, or they are not there at time `end`. */
static enum receipt receive(struct device *device, void *data, size_t size, uint64_t end) {
  uint8_t *at = data;
  while (size) {
    struct pollfd wait = {.fd = device->socket, .events = POLLIN};
    uint64_t time = now(), left = end > time ? (end - time) / 1000000 + 1 : 0;
    if (!left) return LATE;
    int ready = poll(&wait, 1, left < 0x7fffffff ? (int)left : 0x7fffffff);
    if (!ready || (ready < 0 && errno == EINTR)) continue;
    ssize_t n = ready < 0 ? -1 : recv(device->socket, at, size, 0);
    if (n < 0 && ready > 0 && errno == EINTR) continue;
    if (n <= 0) return BROKEN;
    at += n;
    size -= (size_t)n;
  }
  return COMPLETE;
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

/* Reads the reply to the request with a ticket, and its tails. */
static enum receipt receive_report(struct device *device, uint64_t ticket, bool record, struct reply *reply,
                                   struct report *report, uint64_t end) {
  *report = (struct report){0};
  look_for_bytes(device);
  enum receipt receipt = receive(device, reply, sizeof *reply, end);
  if (receipt != COMPLETE) return receipt;
  uint64_t count = record && reply->status == STATUS_DONE ? reply->address : 0;
  uint64_t places = reply->locations * sizeof(struct location);
  uint64_t size = places + reply->message_size + reply->printf_size;
  if (reply->ticket != ticket || size > MOST_TAIL || count > MOST_TAIL / sizeof(struct record)) return BROKEN;
  char *tail = malloc(size + 1);
  struct record *records = malloc(count * sizeof *records + 1);
  receipt = tail && records ? receive(device, tail, size, end) : BROKEN;
  if (receipt == COMPLETE) receipt = receive(device, records, count * sizeof *records, end);
  if (receipt != COMPLETE) {
    free(tail);
    free(records);
    return receipt;
  }
  *report = (struct report){.tail = tail, .records = records, .record_count = (uint32_t)count,
                            .message = tail + places, .message_size = reply->message_size,
                            .printed = tail + places + reply->message_size, .printed_size = reply->printf_size,
                            .nanoseconds = reply->nanoseconds};
  find_place(reply, tail, report);
  return COMPLETE;
}

void report_free(struct report *report) {
  free(report->tail);
  free(report->records);
  *report = (struct report){0};
}

int above_streams(int file) {
  int moved = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, FIRST_OWN);
  if (file >= 0) close(file);
  return moved;
}

/* The engine's arguments (sim/engine/main.c). */
enum { CORES, TECS, SHARED_BYTES, MEMORY_BYTES, ARGUMENTS };

/* Starts the engine with its three descriptors; the number of its process, or -1. */
static int spawn(const char *engine, const uint64_t *numbers, const int *files) {
  char texts[ARGUMENTS][24], *arguments[ARGUMENTS + 2] = {(char *)engine}, *environment[] = {NULL};
  for (int i = 0; i < ARGUMENTS; i++) {
    snprintf(texts[i], sizeof texts[i], "%llu", (unsigned long long)numbers[i]);
    arguments[i + 1] = texts[i];
  }
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return -1;
  bool complete = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0) == 0;
  for (int stream = 1; stream < 3; stream++) complete &= posix_spawn_file_actions_adddup2(&actions, 0, stream) == 0;
  for (int file = SOCKET; file < FIRST_FOREIGN; file++)
    complete &= posix_spawn_file_actions_adddup2(&actions, files[file], file) == 0;
  int process = -1;
  if (!complete || posix_spawn(&process, engine, &actions, NULL, arguments, environment) != 0) process = -1;
  posix_spawn_file_actions_destroy(&actions);
  return process;
}

/* A socket and a lifeline, both ends of each: ours in `device`, the worker's in `files`. False when there are none. */
static bool make_files(struct device *device, int *files) {
  int sockets[2] = {-1, -1}, line[2] = {-1, -1};
  bool made = socketpair(AF_UNIX, SOCK_STREAM_CLOEXEC, 0, sockets) == 0 && pipe2(line, O_CLOEXEC) == 0;
  device->socket = above_streams(sockets[0]);
  device->lifeline = above_streams(line[1]);
  files[SOCKET] = above_streams(sockets[1]);
  files[SHARED_FILE] = device->shared_file;
  files[LIFELINE] = above_streams(line[0]);
  return made && device->socket >= 0 && device->lifeline >= 0 && files[SOCKET] >= 0 && files[LIFELINE] >= 0;
}

static void close_open(int file) {
  if (file >= 0) close(file);
}

static void let_go(struct device *device) {
  close_open(device->socket);
  close_open(device->lifeline);
  device->socket = device->lifeline = -1;
}

void worker_stop(struct device *device) {
  pthread_mutex_lock(&device->lock);
  if (device->process > 0) {
    let_go(device);
    end_process(device->process);
    waitpid(device->process, NULL, 0);
  }
  device->process = 0;
  pthread_mutex_unlock(&device->lock);
}

void worker_forget(struct device *device) {
  if (device->process > 0) let_go(device);
  device->process = 0;
}

/* Says what the worker reports, although it goes on, and what to do about it. */
static void warn(const struct report *report, const char *advice) {
  char text[400];
  int size = snprintf(text, sizeof text, "compass simulator: warning: %.*s%s\n",
                      report->message_size < 256 ? (int)report->message_size : 256, report->message, advice);
  write_all(2, text, (size_t)size);
}

/* Adds to a request's options the readings of AIFF registers that COMPASS_AIFF_ASSUME names. */
static bool add_assumptions(uint32_t *options) {
  static const char *const names[] = {AIFF_ASSUMPTION_NAMES};
  const char *at = getenv("COMPASS_AIFF_ASSUME");
  while (at && *at) {
    at += strspn(at, ", ");
    size_t size = strcspn(at, ", "), bit = 0;
    while (size && bit < ASSUMPTIONS && (strncasecmp(names[bit], at, size) != 0 || names[bit][size])) bit++;
    if (bit == ASSUMPTIONS)
      return fail(AIPU_STATUS_ERROR_INVALID_CONFIG, "COMPASS_AIFF_ASSUME: there is no reading %.*s", (int)size, at), false;
    if (size) *options |= 1u << (ASSUMPTIONS_FROM + bit);
    at += size;
  }
  return true;
}

/* Starts the process; the device has it, or nothing of it. */
static bool start_process(struct device *device, const char *engine, const struct shape *shape) {
  const uint64_t numbers[ARGUMENTS] = {[CORES] = shape->cores, [TECS] = shape->tecs,
                                       [SHARED_BYTES] = shape->shared_bytes, [MEMORY_BYTES] = device->memory_limit};
  int files[FIRST_FOREIGN];
  pthread_mutex_lock(&device->lock);
  int process = make_files(device, files) ? spawn(engine, numbers, files) : -1;
  close_open(files[SOCKET]);
  close_open(files[LIFELINE]);
  if (process < 0) {
    let_go(device);
  } else {
    device->shape = *shape;
    device->process = process;
    if (device->shut) end_process(process);
  }
  pthread_mutex_unlock(&device->lock);
  return process > 0;
}

aipu_status_t worker_start(struct device *device, const struct shape *shape) {
  const char *engine = device->engine ? device->engine : COMPASS_ENGINE;
  if (!start_process(device, engine, shape))
    return fail(AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "the simulator engine '%s' does not start: %s", engine,
                strerror(errno));
  struct reply hello;
  struct report report;
  bool answers = receive_report(device, 0, false, &hello, &report, now() + START_LIMIT_NS) == COMPLETE;
  if (!answers || hello.status != STATUS_DONE) {
    worker_stop(device);
    fail(AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "the simulator engine '%s' cannot be used: %.*s", engine,
         answers ? (int)report.message_size : 17, answers ? report.message : "it does not start");
    report_free(&report);
    return AIPU_STATUS_ERROR_OPEN_DEV_FAIL;
  }
  if (report.message_size) warn(&report, "; run only kernels that you trust");
  report_free(&report);
  return AIPU_STATUS_SUCCESS;
}

static aipu_status_t fault_status(const struct device *device, const struct reply *reply, const struct report *report) {
  switch (reply->fault) {
    case FAULT_TIMEOUT:
      return fail(AIPU_STATUS_ERROR_JOB_TIMEOUT, "%s", TOO_LONG);
    case FAULT_DEADLOCK:
      return fail(AIPU_STATUS_ERROR_JOB_EXCEPTION, "TECs wait for ever at a barrier that the others do not reach");
    case FAULT_SIGNAL:
      if (reply->signal == SIGBUS && reply->address >= device->memory_size && reply->address < WINDOW_HIGH)
        return fail(AIPU_STATUS_ERROR_JOB_EXCEPTION,
                    "TEC %u went beyond the %llu MiB of device memory that this host can give", reply->tec,
                    (unsigned long long)(device->memory_size >> 20));
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
  enum receipt receipt = BROKEN;
  if (!add_assumptions(&request.options)) return AIPU_STATUS_ERROR_INVALID_CONFIG;
  while (!request.ticket && getrandom(&request.ticket, sizeof request.ticket, 0) > 0) {}
  if (request.ticket && transmit(device, &request, sizeof request))
    receipt = receive_report(device, request.ticket, chain->record, &reply, report, now() + limit + GRACE_NS);
  if (receipt != COMPLETE) {
    worker_stop(device);
    if (receipt == LATE) return fail(AIPU_STATUS_ERROR_JOB_TIMEOUT, "%s", TOO_LONG);
    return fail(AIPU_STATUS_ERROR_DEV_ABNORMAL, "the simulator process ended without a report, or sent a damaged one");
  }
  if (reply.status == STATUS_DONE) {
    if (report->message_size) warn(report, "");
    return AIPU_STATUS_SUCCESS;
  }
  if (reply.status == STATUS_REFUSED)
    return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "the simulator refuses the job: %.*s", (int)report->message_size,
                report->message);
  worker_stop(device);
  return fault_status(device, &reply, report);
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
