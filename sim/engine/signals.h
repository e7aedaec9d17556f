/* The structures that Linux hands to a signal handler, as far as they are used; x86-64. */
#ifndef ENGINE_SIGNALS_H
#define ENGINE_SIGNALS_H

#include "libc.h"

struct signal_action {
  void *handler;
  unsigned long mask[16];
  int flags;
  void *restorer;
};
struct signal_info {
  int number, error, code, padding;
  uint64_t address;
  int system_call; /* of SIGSYS */
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
#define REGISTER_FLAGS 17
#define SA_SIGINFO 4
#define SA_ONSTACK 0x08000000
enum {
  SIGNAL_ILL = 4,
  SIGNAL_TRAP = 5,
  SIGNAL_BUS = 7,
  SIGNAL_FPE = 8,
  SIGNAL_SEGV = 11,
  SIGNAL_USR2 = 12,
  SIGNAL_SYS = 31
};
/* Timers of Linux that send a signal to one thread. */
struct timer_event {
  uint64_t value;
  int signal, notify, thread, unused[11];
};
struct timer_setting {
  struct timespec interval, first;
};
#define NOTIFY_THREAD 4
#define NO_TIMER (-1)
#define SYS_GETTID 186
#define SYS_TIMER_CREATE 222
#define SYS_TIMER_SETTIME 223
#define SIG_SETMASK 2
int sigprocmask(int, const unsigned long *mask, unsigned long *before); /* masks of 16 words */
int sigaction(int, const struct signal_action *, struct signal_action *);
int sigaltstack(const struct signal_stack *, struct signal_stack *);

#endif
