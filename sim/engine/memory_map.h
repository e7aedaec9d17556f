/* Addresses of the worker process. compass_sim/memory_map.py has the same numbers.
 *
 *   WINDOW_LOW  .. ENGINE_LOW    device memory, shared with the parent
 *   ENGINE_LOW  .. CODE_HIGH     the loaded kernel object: code, constants, __local arrays
 *   STACKS_LOW  .. ENGINE_HIGH   stacks of the TECs, STACK_SIZE apart, lowest page of each without access
 *   ENGINE_HIGH .. WINDOW_HIGH   device memory, shared with the parent
 *
 * Kernel code must lie below 2 GiB, where 32-bit signed relocations reach. The engine itself lives above 4 GiB.
 */
#ifndef ENGINE_MEMORY_MAP_H
#define ENGINE_MEMORY_MAP_H

#include "libc.h"

#define PAGE 4096u
#define WINDOW_LOW 0x00010000u
#define WINDOW_HIGH 0xfffff000u
#define ENGINE_LOW 0x60000000u
#define CODE_HIGH 0x70000000u
#define STACKS_LOW 0x70000000u
#define STACK_SIZE 0x00100000u
#define ENGINE_HIGH 0x80000000u
#define MAX_TECS 16u

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
