#include "fault.h"

#include "barrier.h"
#include "debug.h"
#include "futex.h"
#include "mailbox.h"
#include "print.h"
#include "schedule.h"
#include "signals.h"
#include "tec.h"
#include "text.h"

#define SIGNAL_STACK_SIZE 65536
#define STOP_WAIT_NS 200000000u
#define SIGNAL_STOP SIGNAL_USR2 /* the engine asks a TEC where it stands */

static uint64_t ticket; /* of the request that is answered now */
static _Thread_local int own_stop_timer = NO_TIMER;
static _Atomic uint32_t reporting; /* the first fault is reported, later ones wait for the end */

static void be_the_only_reporter(void) {
  if (atomic_exchange(&reporting, 1) == 0) return;
  for (;;) pause();
}

void follow_parent(void) {
  char next;
  if (recv(SOCKET, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0) _exit(2);
}

static uint64_t offset_in_text(uint64_t address) {
  bool inside = address >= loaded_object.text_low && address < loaded_object.text_high;
  return inside ? address - loaded_object.text_low : NO_PC;
}

/* The kernel's last call of a function that is not its own: the first return address into `.text` from a place of the TEC's
 * stack on. A return address follows the call, so one less lies within it. */
static uint64_t call_on(const struct tec *tec, uint64_t sp) {
  sp &= ~7ull;
  if (sp < stack_low(tec->id) + PAGE) return NO_PC;
  for (; sp + 8 <= stack_high(tec->id); sp += 8) {
    uint64_t pc = offset_in_text(*(const uint64_t *)sp - 1);
    if (pc != NO_PC) return pc;
  }
  return NO_PC;
}

/* Where in `.text` a TEC stands; when it is in a function that the kernel called, that is the call. */
static uint64_t kernel_pc(const struct tec *tec, const struct signal_context *context) {
  uint64_t pc = offset_in_text(context->registers[REGISTER_PC]);
  return pc != NO_PC ? pc : call_on(tec, context->registers[REGISTER_SP]);
}

void reply_to(uint64_t request) { ticket = request; }

bool send_reply(struct reply *reply, const struct location *locations, const char *message) {
  reply->ticket = ticket;
  reply->message_size = (uint32_t)strlen(message);
  reply->printf_size = print_size();
  bool ok = send_bytes(SOCKET, reply, sizeof *reply);
  if (reply->locations) ok = ok && send_bytes(SOCKET, locations, reply->locations * sizeof *locations);
  if (reply->message_size) ok = ok && send_bytes(SOCKET, message, reply->message_size);
  for (uint32_t i = 0; ok && i < MAX_TECS; i++)
    if (tecs[i].printed.size) ok = send_bytes(SOCKET, tecs[i].printed.text, tecs[i].printed.size);
  if (ticket) mailbox_answer(ticket, REPLY_IN_SOCKET);
  return ok;
}

static _Noreturn void report(struct reply *reply, const struct location *locations, const char *message) {
  reply->status = STATUS_FAULT;
  send_reply(reply, locations, message);
  debug_before_exit();
  _exit(1);
}

static _Noreturn void report_tec(struct reply *reply, const struct signal_context *context, const char *message) {
  const struct tec *tec = current_tec();
  struct location location = {tec ? tec->id : UINT32_MAX, TEC_RUNNING, tec ? kernel_pc(tec, context) : NO_PC};
  reply->tec = location.tec;
  reply->locations = 1;
  report(reply, &location, tec ? message : "the simulator engine itself failed");
}

static void on_fault(int number, const struct signal_info *info, const struct signal_context *context) {
  be_the_only_reporter();
  struct reply reply = {
      .fault = FAULT_SIGNAL, .signal = (uint32_t)number, .signal_code = info->code, .address = info->address};
  report_tec(&reply, context, "");
}

static void on_system_call(int number, const struct signal_info *info, const struct signal_context *context) {
  be_the_only_reporter();
  struct reply reply = {.fault = FAULT_SYSTEM_CALL, .signal = (uint32_t)number, .address = (uint64_t)info->system_call};
  report_tec(&reply, context, "the kernel made a system call of the host, which code of kernels may not");
}

static void on_step(int number, const struct signal_info *info, struct signal_context *context) {
  if (!schedule_on) on_fault(number, info, context);
  schedule_after_step(context->registers);
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

static void handle(int number, void *handler) {
  sigaction(number, &(struct signal_action){.handler = handler, .flags = SA_SIGINFO | SA_ONSTACK}, NULL);
}

void install_fault_handlers(void) {
  static const int fatal[] = {SIGNAL_ILL, SIGNAL_BUS, SIGNAL_FPE, SIGNAL_SEGV};
  static const unsigned long none[16];
  sigprocmask(SIG_SETMASK, none, NULL); /* the parent's thread may have blocked some */
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) handle(fatal[i], (void *)on_fault);
  handle(SIGNAL_SYS, (void *)on_system_call);
  handle(SIGNAL_TRAP, (void *)on_step);
  handle(SIGNAL_STOP, (void *)on_stop);
  prepare_thread();
}

void prepare_thread(void) {
  void *low = mmap(NULL, SIGNAL_STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (low == MAP_FAILED) return;
  sigaltstack(&(struct signal_stack){low, 0, SIGNAL_STACK_SIZE}, NULL);
  const struct timer_event stop = {
      .signal = SIGNAL_STOP, .notify = NOTIFY_THREAD, .thread = (int)syscall(SYS_GETTID)};
  if (syscall(SYS_TIMER_CREATE, CLOCK_MONOTONIC, &stop, &own_stop_timer) != 0) own_stop_timer = NO_TIMER;
}

int stop_timer(void) { return own_stop_timer; }

/* By a timer that runs out at once: the filter has no call with which a thread sends signals. */
static void stop(const struct tec *tec) {
  static const struct timer_setting at_once = {.first = {0, 1}};
  if (tec->stop_timer != NO_TIMER) syscall(SYS_TIMER_SETTIME, tec->stop_timer, 0, &at_once, NULL);
}

static bool runs(const struct location *at) { return at->state != TEC_FINISHED && at->state != TEC_NOT_STARTED; }

/* Where the TECs of running groups stand, one record each; their number. */
static uint32_t stop_tecs(struct location *locations) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < MAX_TECS; i++) {
    if (!is_engaged(&tecs[i])) continue;
    locations[count] = (struct location){i, atomic_load(&tecs[i].state), NO_PC};
    if (runs(&locations[count++])) stop(&tecs[i]);
  }
  uint64_t patience = now() + STOP_WAIT_NS;
  for (uint32_t i = 0; i < count; i++) {
    struct tec *tec = &tecs[locations[i].tec];
    bool paused = false;
    while (runs(&locations[i]) && !(paused = hold_paused(tec)) && !atomic_load(&tec->stopped) && now() < patience)
      nanosleep(&(struct timespec){0, 100000}, NULL);
    if (paused) locations[i].pc = call_on(tec, tec->paused_sp);
    if (atomic_load(&tec->stopped)) locations[i].pc = tec->stopped_at;
    if (barrier_keeps(tec)) locations[i].state = TEC_AT_END;
    /* The call at a kernel's end leaves nothing on the stack; its line is that of the kernel's head. */
    bool waits = locations[i].state == TEC_AT_END || locations[i].state == TEC_AT_BARRIER;
    if (waits && locations[i].pc == NO_PC) locations[i].pc = offset_in_text((uint64_t)tec->task.entry);
  }
  return count;
}

_Noreturn void report_standstill(enum fault fault, uint64_t nanoseconds) {
  struct location locations[MAX_TECS];
  be_the_only_reporter();
  struct reply reply = {.fault = fault, .tec = UINT32_MAX, .nanoseconds = nanoseconds};
  reply.locations = stop_tecs(locations);
  for (uint32_t i = 0; i < reply.locations && reply.tec == UINT32_MAX; i++)
    if (locations[i].state == TEC_RUNNING) reply.tec = locations[i].tec;
  report(&reply, locations, fault == FAULT_MEMORY ? "the kernel filled more device memory than the host can give" : "");
}

_Noreturn void kernel_fault(enum fault fault, const char *message) {
  be_the_only_reporter();
  struct signal_context here = {.registers[REGISTER_SP] = (uint64_t)__builtin_frame_address(0)};
  struct reply reply = {.fault = fault};
  report_tec(&reply, &here, message);
}
