/* The worker process: compass-worker CORES TECS SHARED_BYTES MEMORY_BYTES [debug|check]
 *
 * Its file descriptors are those of wire.h. CORES is how many cores the device has, TECS how many TECs each has,
 * SHARED_BYTES how much shared memory, MEMORY_BYTES how much device memory jobs may have in use; 0 is no limit. `debug`: it may be debugged (debug.h),
 * `check`: it runs kernels that were compiled for checks (check.h).
 *
 * It runs the jobs that requests name until the socket closes, or until a kernel faults.
 */
#include "accelerator.h"
#include "barrier.h"
#include "check.h"
#include "debug.h"
#include "fault.h"
#include "futex.h"
#include "mailbox.h"
#include "print.h"
#include "record.h"
#include "sandbox.h"
#include "schedule.h"
#include "tcb.h"
#include "text.h"
#include "watch.h"

int main(int count, char **arguments);

/* The job that was run last. `reply_waits`: its reply is in the mailbox alone. */
static struct {
  uint64_t ticket, nanoseconds;
  bool reply_waits;
} last;

static void send_time(void) {
  struct reply reply = {.status = STATUS_DONE, .nanoseconds = last.nanoseconds};
  last.reply_waits = false;
  if (!send_reply(&reply, NULL, "")) _exit(2);
}

/* Receives the next request that was not run yet; `by_mailbox`: it came there. False when the socket has closed. */
static bool next_request(struct request *request, uint64_t *seed, bool *by_mailbox) {
  *seed = 0;
  *by_mailbox = last.ticket && mailbox_take(SOCKET, request);
  if (*by_mailbox) return true;
  while (receive_bytes(SOCKET, request, sizeof *request)) {
    mailbox_clear();
    if (request->ticket != last.ticket)
      return !(request->options & HAS_SCHEDULE) || receive_bytes(SOCKET, seed, sizeof *seed);
    if (last.reply_waits) send_time();
  }
  return false;
}

static void answer(const struct request *request, uint64_t seed, bool by_mailbox) {
  char message[MESSAGE_SIZE] = "";
  print_clear();
  reply_to(request->ticket);
  record_begin_job(request->options & WANT_RECORDS);
  schedule_begin_job(seed);
  accelerator_begin_job(request->chain == CHAIN_X3, request->options >> ASSUMPTIONS_FROM);
  if (check_on) check_begin_job();
  uint64_t start = now();
  watch_begin_job(request->time_limit);
  enum status status = run_chain(request, message);
  watch_end_job();
  uint64_t elapsed = now() - start;
  if (check_on) check_end_job();
  if (status == STATUS_DONE) accelerator_end_job(message, sizeof message);
  last.ticket = request->ticket;
  last.nanoseconds = elapsed;
  last.reply_waits = by_mailbox && status == STATUS_DONE && !*message && !print_size() && !record_count();
  if (last.reply_waits) {
    mailbox_answer(last.ticket, elapsed);
    return;
  }
  struct reply reply = {.status = status, .nanoseconds = elapsed};
  reply.address = record_count();
  if (!send_reply(&reply, NULL, message)) _exit(2);
  if (!send_records(SOCKET)) _exit(2);
}

static uint64_t number(const char *text) { return strtoul(text, NULL, 10); }

static bool start(uint64_t memory_bytes, bool checks, char *message) {
  if (device.cores == 0 || device.tecs_per_core == 0 || device.cores * device.tecs_per_core > MAX_TECS)
    return snprintf(message, MESSAGE_SIZE, "a device has 1 to %u TECs", MAX_TECS), false;
  limit_memory(memory_bytes, checks ? SHADOW_BYTES : 0);
  if (!map_window(SHARED_FILE, message, MESSAGE_SIZE)) return false;
  if (!mailbox_start(SHARED_FILE))
    return snprintf(message, MESSAGE_SIZE, "the host cannot map shared memory: %s", strerror(errno)), false;
  if (checks && !check_start(SHARED_FILE, message, MESSAGE_SIZE)) return false;
  install_fault_handlers();
  if (!start_threads() || !watch_start())
    return snprintf(message, MESSAGE_SIZE, "the host cannot start a thread for each TEC: %s", strerror(errno)), false;
  forbid_system_calls(message, MESSAGE_SIZE);
  return true;
}

int main(int count, char **arguments) {
  if (count != 5 && count != 6) return 2;
  device =
      (struct device){(uint32_t)number(arguments[1]), (uint32_t)number(arguments[2]), (uint32_t)number(arguments[3])};
  bool checks = count == 6 && strcmp(arguments[5], "check") == 0;
  char message[MESSAGE_SIZE] = "";
  /* With a ninth thread that allocates glibc would count the host's processors, for which it opens a file: forbidden here. */
  if (mallopt) mallopt(M_ARENA_MAX, 4);
  close_foreign_files();
  if (!end_with_parent()) return 3;
  if (count == 6 && strcmp(arguments[5], "debug") == 0) debug_begin();
  bool started = start(number(arguments[4]), checks, message);
  struct reply hello = {.status = started ? STATUS_DONE : STATUS_REFUSED};
  if (!send_reply(&hello, NULL, message) || !started) return 1;
  struct request request;
  uint64_t seed;
  bool by_mailbox;
  while (next_request(&request, &seed, &by_mailbox)) answer(&request, seed, by_mailbox);
  return 0;
}
