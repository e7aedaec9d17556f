#include "device.h"

#include "ranges.h"

#define LARGE (1u << 20) /* pages of memory that large are given back instead of being written */

/* All that are open, and the lock of the list. */
static struct device *devices;
static pthread_mutex_t devices_lock;

static void before_fork(void) {
  pthread_mutex_lock(&devices_lock);
  for (struct device *device = devices; device; device = device->next) pthread_mutex_lock(&device->lock);
}

static void after_fork_in_parent(void) {
  for (struct device *device = devices; device; device = device->next) pthread_mutex_unlock(&device->lock);
  pthread_mutex_unlock(&devices_lock);
}

/* The thread that held a lock may not exist here. */
static void after_fork_in_child(void) {
  for (struct device *device = devices; device; device = device->next) {
    worker_forget(device);
    device->stale = true;
    device->lock = device->running = (pthread_mutex_t){0};
  }
  devices_lock = (pthread_mutex_t){0};
}

#ifndef COMPASS_STATIC_DRIVER /* as part of a program it has that one's name, and its end */
/* What C start-up files would bring: the library's own name among those who want to be called back. */
void *__dso_handle = &__dso_handle;
__attribute__((destructor(101))) static void leave(void) { __cxa_finalize(&__dso_handle); }
#endif
__attribute__((constructor(101))) static void watch_forks(void) {
  __register_atfork(before_fork, after_fork_in_parent, after_fork_in_child, &__dso_handle);
}

static void list(struct device *device) {
  pthread_mutex_lock(&devices_lock);
  device->next = devices;
  if (devices) devices->previous = device;
  devices = device;
  pthread_mutex_unlock(&devices_lock);
}

static void unlist(struct device *device) {
  pthread_mutex_lock(&devices_lock);
  *(device->previous ? &device->previous->next : &devices) = device->next;
  if (device->next) device->next->previous = device->previous;
  device->next = device->previous = NULL;
  pthread_mutex_unlock(&devices_lock);
}

/* Three quarters of the memory the host has free, as compass_sim counts it; 0 when the host does not say. */
static uint64_t host_memory_limit(void) {
  char text[1024];
  int file = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  text[n > 0 ? n : 0] = 0;
  const char *line = strstr(text, "MemAvailable:");
  uint64_t kibibytes = 0;
  for (line = line ? line + 13 : ""; *line == ' ' || (*line >= '0' && *line <= '9'); line++)
    if (*line != ' ') kibibytes = kibibytes * 10 + (uint64_t)(*line - '0');
  return kibibytes * 1024 / 4 * 3;
}

/* How long the file of device memory is of which `limit` bytes may be in use: behind its end there is none. */
static uint64_t file_size(uint64_t limit) {
  uint64_t size = limit <= ENGINE_LOW ? pages(limit) : pages(limit) + ENGINE_HIGH - ENGINE_LOW;
  return limit && size < WINDOW_HIGH ? size : WINDOW_HIGH;
}

/* Maps a new file of `memory_size` bytes as the device's memory, where it is wanted. */
static aipu_status_t map_memory(struct device *device, uint8_t *wanted) {
  int file = above_streams(memfd_create("compass-device", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  void *memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, (long)device->memory_size) == 0 &&
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    memory = mmap(wanted, device->memory_size, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_NORESERVE | (wanted ? MAP_FIXED : 0), file, 0);
  if (memory == MAP_FAILED) {
    fail(AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "no device memory: %s", strerror(errno));
    if (file >= 0) close(file);
    return AIPU_STATUS_ERROR_OPEN_DEV_FAIL;
  }
  device->shared_file = file;
  device->memory = memory;
  return AIPU_STATUS_SUCCESS;
}

static aipu_status_t make_memory(struct device *device) {
  device->memory_limit = host_memory_limit();
  device->memory_size = file_size(device->memory_limit);
  device->ranges = calloc(16, sizeof *device->ranges);
  if (!device->ranges) return fail(AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "no memory for a device");
  aipu_status_t status = map_memory(device, NULL);
  if (status != AIPU_STATUS_SUCCESS) return status;
  uint64_t size = device->memory_size;
  device->range_room = 16;
  device->ranges[device->range_count++] = (struct range){WINDOW_LOW, size < ENGINE_LOW ? size : ENGINE_LOW, false};
  if (size > ENGINE_HIGH) {
    device->ranges[device->range_count++] = (struct range){ENGINE_LOW, ENGINE_HIGH, true};
    device->ranges[device->range_count++] = (struct range){ENGINE_HIGH, size, false};
  }
  list(device);
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
    unlist(device);
    munmap(device->memory, device->memory_size);
    close(device->shared_file);
  }
  free(device->ranges);
  free(device->engine);
  *device = (struct device){0};
}

aipu_status_t device_renew(struct device *device) {
  if (!device->stale) return AIPU_STATUS_SUCCESS;
  int of_parent = device->shared_file;
  aipu_status_t status = map_memory(device, device->memory);
  if (status != AIPU_STATUS_SUCCESS) return status;
  close(of_parent);
  device->stale = false;
  return AIPU_STATUS_SUCCESS;
}

aipu_status_t device_empty(struct device *device) {
  pthread_mutex_lock(&device->running);
  worker_stop(device);
  bool emptied = madvise(device->memory, device->memory_size, MADV_REMOVE) == 0;
  pthread_mutex_unlock(&device->running);
  if (emptied) return AIPU_STATUS_SUCCESS;
  return fail(AIPU_STATUS_ERROR_DEV_ABNORMAL, "device memory cannot be emptied: %s", strerror(errno));
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
