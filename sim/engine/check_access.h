/* Accesses of memory in a checked run. */
#ifndef ENGINE_CHECK_ACCESS_H
#define ENGINE_CHECK_ACCESS_H

#include "check.h"

/* One access: `item` is the size of an element, `kind` of enum check_access. */
struct access {
  uint64_t address, pc;
  uint32_t size, item, kind;
};

/* Looks at an access before it is made; false when it must not be made. A write over what another TEC wrote in this
 * phase is a race only when it changes something, which is known once it is made: `access_settle` reports it then. */
bool access_check(struct tec *tec, const struct access *access);
void access_settle(struct tec *tec);

/* Forgets all accesses, and gives their memory back. */
void access_begin_job(void);

/* A group begins, on the core of this bit (0: on any); `waits`: for others that were started before it. */
void access_begin_group(uint32_t core, bool waits);

/* The parts of access_check, for transfers: whether all of it lies in a buffer; whether other TECs are in the way. */
bool access_in_bounds(const struct tec *tec, const struct access *access);
void access_races(struct tec *tec, const struct access *access);

/* A number below 2^16 for a place in the code, 0 when there are too many; and the place, NO_PC for 0. */
uint32_t site_of(uint64_t pc);
uint64_t site_pc(uint32_t site);

void access_report(enum check_kind kind, const struct tec *tec, const struct access *access,
                   const struct check_side *there);

/* What an exported function does for the vector accesses of sim/include/compass/memory.h: lane i of `lanes` whose byte
 * of `mask` has bit 0 is at `offsets[i]`, or i * `step` without offsets, from `base`, and is copied to or from lane i
 * of `value`. `pc` is where the kernel is. */
void __compass_checked_lanes(uint8_t *value, const void *base, int64_t step, const uint16_t *offsets,
                             const uint8_t *mask, uint32_t shape, const void *pc);

/* What assertions call that do not hold. */
void __compass_assertion_failed(const char *text);

/* What the atomic operations of sim/include/compass/atomics.h call first. */
void __compass_checked_atomic(void *at, const void *pc);

/* What the code of integer divisions (compass_core/hostcc/divisions.py, arith.h) calls where the divisor is 0. */
void __compass_divided_by_zero(void);

/* What clang's instrumentation (-fsanitize=kernel-address) calls before each access. */
#define CHECKED(size)                            \
  void __asan_load##size##_noabort(uint64_t at); \
  void __asan_store##size##_noabort(uint64_t at);
CHECKED(1)
CHECKED(2)
CHECKED(4)
CHECKED(8)
CHECKED(16)
#undef CHECKED
void __asan_loadN_noabort(uint64_t at, uint64_t size);
void __asan_storeN_noabort(uint64_t at, uint64_t size);
void *__asan_memcpy(void *to, const void *from, uint64_t size);
void *__asan_memset(void *to, int value, uint64_t size);

/* What it calls when an address is no multiple of what its type asks for. */
struct typed_access {
  struct {
    const char *file;
    uint32_t line, column;
  } place;
  const void *type;
  uint8_t alignment_log, is_store;
};
void __ubsan_handle_type_mismatch_v1(const struct typed_access *typed, uint64_t address);

/* What it calls where a function begins or ends: `size` bytes of its shadow get the code in the name. */
void __asan_set_shadow_00(uint8_t *at, uint64_t size);
void __asan_set_shadow_f1(uint8_t *at, uint64_t size);
void __asan_set_shadow_f2(uint8_t *at, uint64_t size);
void __asan_set_shadow_f3(uint8_t *at, uint64_t size);
void __asan_set_shadow_f5(uint8_t *at, uint64_t size);
void __asan_set_shadow_f8(uint8_t *at, uint64_t size);
void __asan_handle_no_return(void);

#endif
