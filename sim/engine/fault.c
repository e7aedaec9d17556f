#include "fault.h"

#include "futex.h"
#include "tec.h"
#include "text.h"

/* The kernel ABI's signal structures, as far as they are used. */
struct signal_action {
  void *handler;
  unsigned long mask[16];
  int flags;
  void *restorer;
};
struct signal_info {
  int number, error, code, padding;
  uint64_t address;
};
struct signal_stack {
  void *low;
  int flags;
  size_t size;
};
struct signal_context {
  unsigned long flags;
  struct signal_context *link;
  struct signal_stack stack;
  uint64_t registers[23];
};
#define REGISTER_SP 15
#define REGISTER_PC 16
#define SA_SIGINFO 4
#define SA_ONSTACK 0x08000000
#define SIGNAL_STOP 12 /* SIGUSR2: the engine asks a TEC where it stands */
int sigaction(int, const struct signal_action *, struct signal_action *);
int sigaltstack(const struct signal_stack *, struct signal_stack *);

#define SIGNAL_STACK_SIZE 65536
#define STOP_WAIT_NS 200000000u

static int report_socket;
static _Atomic uint32_t reporting; /* the first fault is reported, later ones wait for the end */

static void be_the_only_reporter(void) {
  if (atomic_exchange(&reporting, 1) == 0) return;
  for (;;) pause();
}

static uint64_t offset_in_text(uint64_t address) {
  bool inside = address >= loaded_object.text_low && address < loaded_object.text_high;
  return inside ? address - loaded_object.text_low : NO_PC;
}

/* Where in `.text` a TEC stands. When it is in a function that the kernel called, that is the call: the first return
 * address into `.text` on its stack. A return address follows the call, so one less lies within it. */
static uint64_t kernel_pc(const struct tec *tec, const struct signal_context *context) {
  uint64_t pc = offset_in_text(context->registers[REGISTER_PC]);
  if (pc != NO_PC) return pc;
  uint64_t sp = context->registers[REGISTER_SP] & ~7ull;
  if (sp < stack_low(tec->id) + PAGE) return NO_PC;
  for (; sp + 8 <= stack_high(tec->id); sp += 8) {
    pc = offset_in_text(*(const uint64_t *)sp - 1);
    if (pc != NO_PC) return pc;
  }
  return NO_PC;
}

bool send_reply(int socket, struct reply *reply, const struct location *locations, const char *message) {
  reply->message_size = (uint32_t)strlen(message);
  for (uint32_t i = 0; i < MAX_TECS; i++) reply->printf_size += (uint32_t)tecs[i].printed.size;
  bool ok = send_bytes(socket, reply, sizeof *reply);
  if (reply->locations) ok = ok && send_bytes(socket, locations, reply->locations * sizeof *locations);
  if (reply->message_size) ok = ok && send_bytes(socket, message, reply->message_size);
  for (uint32_t i = 0; ok && i < MAX_TECS; i++)
    if (tecs[i].printed.size) ok = send_bytes(socket, tecs[i].printed.text, tecs[i].printed.size);
  return ok;
}

static _Noreturn void report(struct reply *reply, const struct location *locations, const char *message) {
  reply->status = STATUS_FAULT;
  send_reply(report_socket, reply, locations, message);
  _exit(1);
}

static void on_fault(int number, const struct signal_info *info, const struct signal_context *context) {
  be_the_only_reporter();
  const struct tec *tec = current_tec();
  struct reply reply = {.fault = FAULT_SIGNAL,
                        .signal = (uint32_t)number,
                        .signal_code = info->code,
                        .address = info->address,
                        .locations = 1,
                        .tec = tec ? tec->id : UINT32_MAX};
  struct location location = {reply.tec, TEC_RUNNING, tec ? kernel_pc(tec, context) : NO_PC};
  report(&reply, &location, tec ? "" : "the simulator engine itself failed");
}

static void on_stop(int number, const struct signal_info *info, const struct signal_context *context) {
  (void)number;
  (void)info;
  struct tec *tec = current_tec();
  if (!tec) return;
  tec->stopped_at = kernel_pc(tec, context);
  atomic_store(&tec->stopped, 1);
  for (;;) pause();
}

void install_fault_handlers(int socket) {
  static const int fatal[] = {4, 7, 8, 11}; /* SIGILL, SIGBUS, SIGFPE, SIGSEGV */
  report_socket = socket;
  struct signal_action action = {.handler = (void *)on_fault, .flags = SA_SIGINFO | SA_ONSTACK};
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) sigaction(fatal[i], &action, NULL);
  action.handler = (void *)on_stop;
  sigaction(SIGNAL_STOP, &action, NULL);
  install_signal_stack();
}

void install_signal_stack(void) {
  void *low = mmap(NULL, SIGNAL_STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (low == MAP_FAILED) return;
  sigaltstack(&(struct signal_stack){low, 0, SIGNAL_STACK_SIZE}, NULL);
}

_Noreturn void report_standstill(enum fault fault, uint64_t nanoseconds) {
  struct location locations[MAX_TECS];
  struct reply reply = {.fault = fault, .tec = UINT32_MAX, .nanoseconds = nanoseconds, .locations = active_tecs};
  be_the_only_reporter();
  for (uint32_t i = 0; i < active_tecs; i++) {
    locations[i] = (struct location){i, atomic_load(&tecs[i].state), NO_PC};
    if (locations[i].state != TEC_FINISHED) pthread_kill(tecs[i].thread, SIGNAL_STOP);
  }
  uint64_t patience = now() + STOP_WAIT_NS;
  for (uint32_t i = 0; i < active_tecs; i++) {
    while (locations[i].state != TEC_FINISHED && !atomic_load(&tecs[i].stopped) && now() < patience)
      nanosleep(&(struct timespec){0, 100000}, NULL);
    if (atomic_load(&tecs[i].stopped)) locations[i].pc = tecs[i].stopped_at;
    if (reply.tec == UINT32_MAX && locations[i].state == TEC_RUNNING) reply.tec = i;
  }
  report(&reply, locations, "");
}

_Noreturn void unsupported(const char *message) {
  be_the_only_reporter();
  const struct tec *tec = current_tec();
  struct signal_context here = {.registers[REGISTER_SP] = (uint64_t)__builtin_frame_address(0)};
  struct location location = {tec->id, TEC_RUNNING, kernel_pc(tec, &here)};
  struct reply reply = {.fault = FAULT_UNSUPPORTED, .tec = tec->id, .locations = 1};
  report(&reply, &location, message);
}
