/* Faults of kernel code: signals, time limit, deadlock. A fault is told to the parent, then the process ends. */
#ifndef ENGINE_FAULT_H
#define ENGINE_FAULT_H

#include "protocol.h"

/* Before anything runs. */
void install_fault_handlers(void);

/* Ends the process when the parent is gone, who will not end it. Called now and then while a job runs. */
void follow_parent(void);

/* In every thread: faults are handled on a stack of their own, for the thread's own may be what is broken; and a timer
 * by which the thread can be asked where it stands. */
void prepare_thread(void);

/* The timer of the calling thread. */
int stop_timer(void);

/* Asks every unfinished TEC where it stands, reports that, and ends the process. */
_Noreturn void report_standstill(enum fault fault, uint64_t nanoseconds);

/* Called in a TEC: the kernel did something that ends its run. */
_Noreturn void kernel_fault(enum fault fault, const char *message);

/* The request that replies answer from now on. */
void reply_to(uint64_t ticket);

/* Sends a reply with its tails: locations, message, and all that the TECs printed. */
bool send_reply(struct reply *reply, const struct location *locations, const char *message);

#endif
