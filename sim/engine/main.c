/* The worker process: compass-worker SOCKET SHARED_FILE [CORES TECS SHARED_BYTES MEMORY_BYTES [debug|check]]
 *
 * Both file descriptors are made by the parent. CORES is how many cores the device has, TECS how many TECs each has (16
 * of one core when they are not given), SHARED_BYTES how much shared memory, MEMORY_BYTES how much device memory jobs
 * may have in use; 0 is no limit. `debug`: it may be debugged (debug.h),
 * `check`: it runs kernels that were compiled for checks (check.h).
 *
 * It runs the jobs that requests name until the socket closes, or until a kernel faults.
 */
#include "barrier.h"
#include "check.h"
#include "debug.h"
#include "fault.h"
#include "futex.h"
#include "print.h"
#include "record.h"
#include "sandbox.h"
#include "schedule.h"
#include "tcb.h"
#include "text.h"
#include "watch.h"

int main(int count, char **arguments);

static void answer(int socket, const struct request *request, uint64_t seed) {
  char message[MESSAGE_SIZE] = "";
  print_clear();
  record_begin_job(request->options & WANT_RECORDS);
  schedule_begin_job(seed);
  if (check_on) check_begin_job();
  uint64_t start = now();
  watch_begin_job(request->time_limit);
  enum status status = run_chain(request, message);
  watch_end_job();
  uint64_t elapsed = now() - start;
  if (check_on) check_end_job();
  struct reply reply = {.status = status, .nanoseconds = elapsed};
  reply.address = record_count();
  if (!send_reply(socket, &reply, NULL, message)) _exit(2);
  if (!send_records(socket)) _exit(2);
}

static uint64_t number(const char *text) { return strtoul(text, NULL, 10); }

static bool start(int socket, int shared_file, uint64_t memory_bytes, bool checks, char *message) {
  if (device.cores == 0 || device.tecs_per_core == 0 || device.cores * device.tecs_per_core > MAX_TECS)
    return snprintf(message, MESSAGE_SIZE, "a device has 1 to %u TECs", MAX_TECS), false;
  limit_memory(shared_file, memory_bytes, checks ? SHADOW_BYTES : 0);
  if (!map_window(shared_file, message, MESSAGE_SIZE)) return false;
  if (checks && !check_start(shared_file, message, MESSAGE_SIZE)) return false;
  install_fault_handlers(socket);
  if (!start_threads() || !watch_start())
    return snprintf(message, MESSAGE_SIZE, "the host cannot start a thread for each TEC: %s", strerror(errno)), false;
  forbid_system_calls(socket, shared_file, message, MESSAGE_SIZE);
  return true;
}

int main(int count, char **arguments) {
  if (count != 3 && count != 7 && count != 8) return 2;
  int socket = (int)number(arguments[1]), shared_file = (int)number(arguments[2]);
  if (count >= 7)
    device =
        (struct device){(uint32_t)number(arguments[3]), (uint32_t)number(arguments[4]), (uint32_t)number(arguments[5])};
  if (count == 8 && strcmp(arguments[7], "debug") == 0) debug_begin();
  char message[MESSAGE_SIZE] = "";
  bool checks = count == 8 && strcmp(arguments[7], "check") == 0;
  bool started = start(socket, shared_file, count >= 7 ? number(arguments[6]) : 0, checks, message);
  struct reply hello = {.status = started ? STATUS_DONE : STATUS_REFUSED};
  if (!send_reply(socket, &hello, NULL, message) || !started) return 1;
  struct request request;
  uint64_t seed;
  while (receive_bytes(socket, &request, sizeof request)) {
    if (!(request.options & HAS_SCHEDULE))
      seed = 0;
    else if (!receive_bytes(socket, &seed, sizeof seed))
      break;
    answer(socket, &request, seed);
    look_for_bytes(socket);
  }
  return 0;
}
