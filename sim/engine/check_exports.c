#include "check.h"
#include "check_access.h"
#include "check_place.h"
#include "check_uninit.h"

#define ROW(name) {#name, (uint64_t)(name)}
#define ACCESS(size) ROW(__asan_load##size##_noabort), ROW(__asan_store##size##_noabort)
#define METADATA(size) ROW(__msan_metadata_ptr_for_load_##size), ROW(__msan_metadata_ptr_for_store_##size)

static struct {
  const char *name;
  uint64_t address;
} exports[] = {
    ROW(__compass_checked_lanes),
    ROW(__compass_assertion_failed),
    ROW(__compass_checked_atomic),
    ROW(__compass_divided_by_zero),
    ACCESS(1),
    ACCESS(2),
    ACCESS(4),
    ACCESS(8),
    ACCESS(16),
    ACCESS(N),
    ROW(__asan_memcpy),
    {"__asan_memmove", (uint64_t)__asan_memcpy},
    ROW(__asan_memset),
    ROW(__asan_set_shadow_00),
    ROW(__asan_set_shadow_f1),
    ROW(__asan_set_shadow_f2),
    ROW(__asan_set_shadow_f3),
    ROW(__asan_set_shadow_f5),
    ROW(__asan_set_shadow_f8),
    ROW(__ubsan_handle_type_mismatch_v1),
    {"__asan_handle_no_return_noabort", (uint64_t)__asan_handle_no_return},
    ROW(__asan_handle_no_return),
    ROW(__asan_register_globals),
    ROW(__asan_unregister_globals),
    METADATA(1),
    METADATA(2),
    METADATA(4),
    METADATA(8),
    METADATA(n),
    ROW(__msan_get_context_state),
    ROW(__msan_poison_alloca),
    ROW(__msan_unpoison_alloca),
    ROW(__msan_instrument_asm_store),
    ROW(__compass_declared),
    ROW(__msan_warning),
    ROW(__msan_chain_origin),
    {"__msan_memcpy", (uint64_t)__msan_memmove},
    ROW(__msan_memmove),
    ROW(__msan_memset),
};

uint64_t check_export(const char *name) {
  for (size_t i = 0; i < sizeof exports / sizeof *exports; i++)
    if (strcmp(exports[i].name, name) == 0) return exports[i].address;
  return 0;
}
