/* The worker process: compass-worker SOCKET SHARED_FILE, both file descriptors made by the parent.
 *
 * It runs the jobs that requests name until the socket closes, or until a kernel faults.
 */
#include "fault.h"
#include "futex.h"
#include "print.h"
#include "tcb.h"
#include "text.h"

int main(int count, char **arguments);

static void answer(int socket, const struct request *request) {
  char message[MESSAGE_SIZE] = "";
  uint32_t fault = 0;
  print_clear();
  uint64_t start = now();
  enum status status = run_chain(request, &fault, message);
  uint64_t elapsed = now() - start;
  if (status == STATUS_FAULT) report_standstill(fault, elapsed);
  struct reply reply = {.status = status, .nanoseconds = elapsed};
  if (!send_reply(socket, &reply, NULL, message)) _exit(2);
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  int socket = (int)strtoul(arguments[1], NULL, 10);
  int shared_file = (int)strtoul(arguments[2], NULL, 10);
  char message[MESSAGE_SIZE] = "";
  struct reply hello = {.status = map_window(shared_file, message, sizeof message) ? STATUS_DONE : STATUS_REFUSED};
  install_fault_handlers(socket);
  if (!send_reply(socket, &hello, NULL, message) || hello.status != STATUS_DONE) return 1;
  struct request request;
  while (receive_bytes(socket, &request, sizeof request)) answer(socket, &request);
  return 0;
}
