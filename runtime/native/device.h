/* The simulated device: its memory, who has which part of it, and the worker process that runs jobs on it.
 *
 * Memory is shared with the worker, and outlives it: after a fault a new worker goes on with the same content. What one
 * kernel breaks in its worker and its memory is broken for all that use the device, so programs that have nothing to do
 * with each other have a device each.
 *
 * A worker ends with the process that started it. A forked child has none of its parent's, nor its memory: there the
 * device is stale until `device_renew`. */
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include "fail.h"
#include "system.h"
#include "wire.h"

#define PAGE 4096u

struct range {
  uint64_t start, end;
  bool used;
};

/* What a worker simulates; `shared_bytes` is the shared memory of a core. */
struct shape {
  uint32_t cores, tecs, shared_bytes;
};

struct device {
  struct device *next, *previous; /* of those that are open */
  char *engine; /* of its own; path of the engine's executable; NULL: the one the library was built for */
  uint8_t *memory; /* indexed by device address; NULL until the device is opened */
  uint64_t memory_size, memory_limit; /* bytes of it; how many may be in use, 0: any number */
  int shared_file;
  int socket, lifeline, process; /* process: the worker; 0: there is none */
  bool shut;                     /* no worker may start any more */
  bool stale;                    /* the process has forked: nothing of memory and worker is this one's */
  struct shape shape;  /* what the worker simulates */
  struct range *ranges; /* of all memory, in order */
  uint32_t range_count, range_room;
  pthread_mutex_t lock;    /* of the ranges and of who the worker is */
  pthread_mutex_t running; /* held while a job runs */
};

/* A chain of `count` task control blocks at `head`; `limit` in nanoseconds. */
struct chain {
  uint32_t head, count;
  bool x3, record; /* record: what TECs do is wanted */
  uint64_t limit;
  struct shape shape;
};

/* What a worker reports of a job, also of one that faulted; all zero when it gave no report. */
struct report {
  char *tail; /* holds the texts */
  const char *message, *printed;
  struct record *records;
  uint32_t message_size, printed_size, record_count;
  uint64_t nanoseconds;
  bool has_pc; /* of a fault: where in `.text` its TEC stood is known */
  uint64_t pc;
};

static inline uint64_t pages(uint64_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

/* Makes memory and starts a worker of this shape, unless there is one. */
aipu_status_t device_open(struct device *device, const struct shape *shape);
void device_close(struct device *device);
/* Gives a stale device memory of its own, at the same addresses and all zero, and what was reserved stays so. */
aipu_status_t device_renew(struct device *device);

/* Ends the worker and makes all memory zero: nothing of the jobs until now is left. What was reserved stays so. */
aipu_status_t device_empty(struct device *device);

/* Device address of `size` zeroed bytes; 0 with a failure when there are none. */
uint32_t device_allocate(struct device *device, uint64_t size);
/* The same with whatever content it has, for those who fill it. */
uint32_t device_reserve(struct device *device, uint64_t size);
void device_release(struct device *device, uint32_t address);

/* Runs a chain, one at a time; a worker of another shape is replaced. The report is the caller's to free. */
aipu_status_t device_run(struct device *device, const struct chain *chain, struct report *report);
void report_free(struct report *report);
/* Returns the status; to the text of a failure the source line is added, from the `.text` whose code ran. */
aipu_status_t fail_in_kernel(aipu_status_t status, const struct report *report, const uint8_t *text, size_t size);
/* Ends the job that runs in another thread, which fails there as if its process had died, and lets no other begin. */
void device_shut(struct device *device);

/* A descriptor moved above the standard streams, which a program may have closed; -1 for -1. */
int above_streams(int file);

/* What names this library to those who call it back. */
extern void *__dso_handle __attribute__((visibility("hidden")));

/* The worker process, under the lock `running`. */
aipu_status_t worker_start(struct device *device, const struct shape *shape);
void worker_stop(struct device *device);
/* In a forked child: closes what belongs to the parent's worker. */
void worker_forget(struct device *device);

/* Writes to a stream of the process. */
void write_all(int file, const char *text, size_t size);

#endif
