/* Messages between the parent (compass_sim/worker.py has the same layouts) and the worker, over one stream socket.
 *
 * The parent gives the worker its descriptors under the numbers of `enum descriptor`. The worker first sends a reply (DONE, or REFUSED with a message) that tells whether it could start; then each request
 * gets one reply. A reply is followed by `locations` location records, `message_size` bytes of message and
 * `printf_size` bytes of what the kernel printed. The message of a later reply DONE says what the results rest on. After FAULT the worker ends. The message of the first reply, when it
 * is DONE, says why the worker runs without its system-call filter; it is empty when there is one.
 */
#ifndef ENGINE_WIRE_H
#define ENGINE_WIRE_H

#include <stdint.h>

/* LIFELINE is the reading end of a pipe whose other end the parent alone has, and never writes to: its end kills the
 * worker. Whatever else is open the worker closes. */
enum descriptor { SOCKET = 3, SHARED_FILE = 4, LIFELINE = 5, FIRST_FOREIGN = 6 };

enum task_chain { CHAIN_X2 = 2, CHAIN_X3 = 3 };
struct request {
  uint32_t head;       /* device address of the first task control block */
  uint32_t count;      /* number of blocks: bound of an X2 chain, length of an X3 one */
  uint32_t chain;      /* enum task_chain */
  uint32_t options;    /* of enum request_option */
  uint64_t time_limit; /* nanoseconds */
  uint64_t ticket;     /* random, not 0: the reply has it, so that none can be made before its request */
};
enum request_option {
  WANT_RECORDS = 1, /* `address` of a DONE reply counts the records that follow all else */
  HAS_SCHEDULE = 2, /* eight bytes follow the request: the seed of a reproducible run, not 0 */
  ASSUMPTIONS_FROM = 16 /* the upper half: which readings of AIFF registers may be assumed (aiff_tables.h) */
};

enum status { STATUS_DONE = 0, STATUS_FAULT = 1, STATUS_REFUSED = 2 };
enum fault {
  FAULT_SIGNAL = 1,
  FAULT_TIMEOUT = 2,
  FAULT_DEADLOCK = 3,
  FAULT_UNSUPPORTED = 4,
  FAULT_DMA = 6,
  FAULT_MEMORY = 7,
  FAULT_SYSTEM_CALL = 8
};
struct reply {
  uint32_t status, fault, tec, signal;
  int32_t signal_code;
  uint32_t locations, message_size, printf_size;
  uint64_t address;     /* the address whose access faulted; of FAULT_SYSTEM_CALL, the number of the call */
  uint64_t nanoseconds; /* wall time of the job */
  uint64_t ticket;      /* of the request that it answers; 0 in the first reply */
};

/* TEC_AT_END: at the barrier with which a kernel ends. */
enum tec_state { TEC_RUNNING = 0, TEC_AT_BARRIER = 1, TEC_FINISHED = 2, TEC_NOT_STARTED = 3, TEC_AT_END = 4 };

/* Where a request without a seed may be put while the worker `looks` for one: its ticket last, all else before. The parent
 * then looks for the ticket in `answered`. When it does not want to look any longer, or the worker had just left, it sends
 * the same request by the socket and gets the reply there; the worker runs it once. The next request is to go by the socket,
 * too, so that it does not overtake this one. The mailbox is the first page of the shared file, which no device address
 * reaches. */
struct mailbox {
  uint64_t looks;
  uint64_t nanoseconds; /* of the job that is `answered`, which is DONE, or REPLY_IN_SOCKET */
  uint64_t answered;
  uint64_t unused[5];
  struct request request;
};
#define REPLY_IN_SOCKET UINT64_MAX

struct location {
  uint32_t tec;
  uint32_t state;
  uint64_t pc; /* offset in the object's .text section; NO_PC when the TEC is not in kernel code */
};
#define NO_PC UINT64_MAX

/* What a TEC did. `site` is where a kernel compiled for profiling says it is, else 0. */
enum record_kind {
  RECORD_TASK_BEGIN = 0,    /* id: group, amount: number of the task in it */
  RECORD_TASK_END = 1,      /* id: events of the task that were not recorded */
  RECORD_COUNT = 2,         /* at the end of a task; id: counter, amount: its value */
  RECORD_BARRIER = 3,       /* arrives at a barrier */
  RECORD_TRANSFER = 4,      /* starts a transfer; amount: bytes, id: channel | mode << 8 | reads << 16 | writes << 17, where
                               channel is an event or NO_EVENT and the last two say whether device memory is used */
  RECORD_WAIT = 5,          /* id: bits of the events waited for */
  RECORD_SECTION_BEGIN = 6, /* a profiler mark; id: its number */
  RECORD_SECTION_END = 7
};
#define NO_EVENT 0xffu
#define TRAFFIC_AIFF 4u /* a mode beside those of DMA: what the AIFF reads and writes */
struct record {
  uint64_t time; /* nanoseconds since the job began; in kernels compiled for profiling, the cycles that the TEC's own
                    work in the task up to here is estimated at */
  uint64_t amount;
  uint32_t kind, tec, id, site;
};

#endif
