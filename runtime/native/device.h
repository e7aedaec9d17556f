/* The simulated device: its memory, who has which part of it, and the worker process that runs jobs on it.
 *
 * Memory is shared with the worker, and outlives it: after a fault a new worker goes on with the same content. */
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include "fail.h"
#include "system.h"

#define PAGE 4096u

struct range {
  uint64_t start, end;
  bool used;
};

struct device {
  char *engine; /* path of the engine's executable; NULL: the one the library was built for */
  uint8_t *memory; /* indexed by device address; NULL until the device is opened */
  int shared_file, socket, process;
  struct range *ranges; /* of all memory, in order */
  uint32_t range_count, range_room;
  pthread_mutex_t allocator, running;
};

struct outcome {
  bool fault;
  char message[256];
};

static inline uint64_t pages(uint64_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

/* Makes memory and starts the worker, unless that has been done. */
aipu_status_t device_open(struct device *device);
void device_close(struct device *device);

/* Device address of `size` zeroed bytes; 0 with a failure when there are none. */
uint32_t device_allocate(struct device *device, uint64_t size);
void device_release(struct device *device, uint32_t address);

/* Runs the chain of `count` task control blocks at `head`; `limit` in nanoseconds. What the kernel prints goes to
 * standard output. */
aipu_status_t device_run(struct device *device, uint32_t head, uint32_t count, bool x3, uint64_t limit);

#endif
