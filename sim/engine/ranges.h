/* Addresses of the worker process. compass_sim/memory_map.py has the same numbers.
 *
 *   WINDOW_LOW  .. ENGINE_LOW    device memory, shared with the parent
 *   ENGINE_LOW  .. CODE_HIGH     the loaded kernel object: code, constants, __local arrays
 *   STACKS_LOW  .. ENGINE_HIGH   stacks of the TECs, STACK_SIZE apart, lowest page of each without access
 *   ENGINE_HIGH .. WINDOW_HIGH   device memory, shared with the parent
 *
 * Kernel code must lie below 2 GiB, where 32-bit signed relocations reach; it lies as low as that what follows is one
 * piece of 3 GiB, the most that the tensors of a file may take. The engine itself lives above 4 GiB.
 */
#ifndef ENGINE_RANGES_H
#define ENGINE_RANGES_H

#define WINDOW_LOW 0x00010000u
#define WINDOW_HIGH 0xfffff000u
#define ENGINE_LOW 0x10000000u
#define CODE_HIGH 0x20000000u
#define STACKS_LOW 0x20000000u
#define STACK_SIZE 0x00200000u
#define ENGINE_HIGH 0x30000000u
#define MAX_TECS 16u

#endif
