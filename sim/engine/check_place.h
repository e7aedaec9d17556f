/* Which buffer an address belongs to. */
#ifndef ENGINE_CHECK_PLACE_H
#define ENGINE_CHECK_PLACE_H

#include "check.h"

/* True when all bytes lie in one buffer that TEC may access. */
bool place_is_valid(const struct tec *tec, uint64_t address, uint64_t size);

/* The buffer at `address`, or else the one that is next to it. */
void place_describe(const struct tec *tec, uint64_t address, struct check_place *place);

/* True for the memory of one TEC alone, which no other one may touch. */
static inline bool is_stack(uint64_t address) { return address >= STACKS_LOW && address < stack_low(MAX_TECS); }

void places_forget_statics(void);

/* What clang puts into an object for each static array, and how it hands them over. */
struct static_array {
  uint64_t address, size, size_with_gap;
  const char *name, *module;
  uint64_t unused[3];
};
void __asan_register_globals(const struct static_array *arrays, uint64_t count);
void __asan_unregister_globals(const struct static_array *arrays, uint64_t count);

#endif
