#include "memory_map.h"

static bool map_at(uint64_t low, uint64_t high, int flags, int file, char *message, size_t size) {
  void *at = (void *)low;
  void *got = mmap(at, high - low, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, file, file < 0 ? 0 : (long)low);
  if (got == at) return true;
  snprintf(message, size, "cannot map device memory %#llx to %#llx: %s", (unsigned long long)low,
           (unsigned long long)high, got == MAP_FAILED ? strerror(errno) : "the addresses are in use");
  return false;
}

bool map_window(int shared_file, char *message, size_t size) {
  const int shared = MAP_SHARED | MAP_NORESERVE, own = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (!map_at(WINDOW_LOW, ENGINE_LOW, shared, shared_file, message, size)) return false;
  if (!map_at(ENGINE_HIGH, WINDOW_HIGH, shared, shared_file, message, size)) return false;
  if (!map_at(STACKS_LOW, stack_low(MAX_TECS), own, -1, message, size)) return false;
  for (uint32_t tec = 0; tec < MAX_TECS; tec++) mprotect((void *)stack_low(tec), PAGE, 0);
  return true;
}
