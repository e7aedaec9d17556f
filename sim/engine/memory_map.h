/* The worker's device memory, at the addresses of ranges.h. */
#ifndef ENGINE_MEMORY_MAP_H
#define ENGINE_MEMORY_MAP_H

#include "libc.h"
#include "ranges.h"

#define PAGE 4096u

/* Maps the shared file into the window, and the stacks. False with a message when the addresses are taken. */
bool map_window(int shared_file, char *message, size_t size);

/* True when `size` bytes at `address` lie in device memory, all in one of its two parts. */
static inline bool is_device_memory(uint64_t address, uint64_t size) {
  if (size > WINDOW_HIGH) return false;
  uint64_t end = address + size;
  return (address >= WINDOW_LOW && end <= ENGINE_LOW) || (address >= ENGINE_HIGH && end <= WINDOW_HIGH);
}

static inline uint64_t stack_low(uint32_t tec) { return STACKS_LOW + (uint64_t)tec * STACK_SIZE; }
static inline uint64_t stack_high(uint32_t tec) { return stack_low(tec) + STACK_SIZE; }

#endif
