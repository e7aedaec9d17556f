#include "device.h"

#include "ranges.h"

#define LARGE (1u << 20) /* pages of memory that large are given back instead of being written */

static aipu_status_t make_memory(struct device *device) {
  device->shared_file = memfd_create("compass-device", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (device->shared_file < 0 || ftruncate(device->shared_file, WINDOW_HIGH) != 0 ||
      fcntl(device->shared_file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail(AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "no device memory: %s", strerror(errno));
  device->ranges = calloc(16, sizeof *device->ranges);
  void *memory = mmap(NULL, WINDOW_HIGH, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, device->shared_file, 0);
  if (memory == MAP_FAILED || !device->ranges) {
    close(device->shared_file);
    return fail(AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "no device memory: %s", strerror(errno));
  }
  device->memory = memory;
  device->range_room = 16;
  device->range_count = 3;
  device->ranges[0] = (struct range){WINDOW_LOW, ENGINE_LOW, false};
  device->ranges[1] = (struct range){ENGINE_LOW, ENGINE_HIGH, true};
  device->ranges[2] = (struct range){ENGINE_HIGH, WINDOW_HIGH, false};
  return AIPU_STATUS_SUCCESS;
}

aipu_status_t device_open(struct device *device, const struct shape *shape) {
  pthread_mutex_lock(&device->running);
  aipu_status_t status = device->memory ? AIPU_STATUS_SUCCESS : make_memory(device);
  if (status == AIPU_STATUS_SUCCESS && !device->process) status = worker_start(device, shape);
  pthread_mutex_unlock(&device->running);
  return status;
}

void device_close(struct device *device) {
  worker_stop(device);
  if (device->memory) {
    munmap(device->memory, WINDOW_HIGH);
    close(device->shared_file);
  }
  free(device->ranges);
  free(device->engine);
}

static bool insert_range(struct device *device, uint32_t at, struct range range) {
  if (device->range_count == device->range_room) {
    struct range *more = calloc(device->range_room * 2, sizeof *more);
    if (!more) return false;
    memcpy(more, device->ranges, device->range_count * sizeof *more);
    free(device->ranges);
    device->ranges = more;
    device->range_room *= 2;
  }
  for (uint32_t i = device->range_count; i > at; i--) device->ranges[i] = device->ranges[i - 1];
  device->ranges[at] = range;
  device->range_count++;
  return true;
}

uint32_t device_reserve(struct device *device, uint64_t size) {
  size = pages(size ? size : 1);
  uint32_t address = 0;
  pthread_mutex_lock(&device->lock);
  for (uint32_t i = 0; i < device->range_count && !address; i++) {
    struct range *range = &device->ranges[i];
    if (range->used || range->end - range->start < size) continue;
    uint64_t start = range->start;
    struct range rest = {start + size, range->end, false};
    if (rest.start < rest.end && !insert_range(device, i + 1, rest)) break;
    device->ranges[i] = (struct range){start, start + size, true};
    address = (uint32_t)start;
  }
  pthread_mutex_unlock(&device->lock);
  if (!address)
    fail(AIPU_STATUS_ERROR_BUF_ALLOC_FAIL, "the device has no %llu bytes left in one piece", (unsigned long long)size);
  return address;
}

uint32_t device_allocate(struct device *device, uint64_t size) {
  uint32_t address = device_reserve(device, size);
  size = pages(size ? size : 1);
  if (address && (size < LARGE || madvise(device->memory + address, size, MADV_REMOVE) != 0))
    memset(device->memory + address, 0, size);
  return address;
}

static void join_ranges(struct device *device, uint32_t at) {
  if (at + 1 >= device->range_count || device->ranges[at].used || device->ranges[at + 1].used) return;
  device->ranges[at].end = device->ranges[at + 1].end;
  device->range_count--;
  for (uint32_t i = at + 1; i < device->range_count; i++) device->ranges[i] = device->ranges[i + 1];
}

void device_release(struct device *device, uint32_t address) {
  if (!address) return;
  pthread_mutex_lock(&device->lock);
  for (uint32_t i = 0; i < device->range_count; i++)
    if (device->ranges[i].start == address && device->ranges[i].used) {
      device->ranges[i].used = false;
      join_ranges(device, i);
      if (i) join_ranges(device, i - 1);
      break;
    }
  pthread_mutex_unlock(&device->lock);
}
