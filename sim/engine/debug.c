#include "debug.h"

#include "elf.h"

#define PR_SET_PTRACER 0x59616d61
#define ANY_PROCESS (~0ul)
#define POLL_NS 1000000
#define EXIT_NS 200000000

/* The interface: the debugger has a breakpoint in the function and then reads the descriptor. */
enum { CODE_REGISTERED = 1, CODE_UNREGISTERED = 2 };
struct code_entry {
  struct code_entry *next, *previous;
  uint8_t *file;
  uint64_t size;
};
struct code_descriptor {
  uint32_t version, action;
  struct code_entry *relevant, *first;
};
__attribute__((used)) struct code_descriptor __jit_debug_descriptor = {.version = 1};
__attribute__((noinline, used)) void __jit_debug_register_code(void) { __asm__ volatile("" ::: "memory"); }

/* Where a debugger stops to find a kernel's lines known and none of it run. */
__attribute__((noinline, used)) void debug_kernel_is_known(void) { __asm__ volatile("" ::: "memory"); }

bool debugged;
__attribute__((used)) volatile uint32_t debug_hold;
static struct code_entry entry;

void debug_begin(void) {
  debugged = true;
  debug_hold = 1;
  prctl(PR_SET_PTRACER, ANY_PROCESS, 0, 0, 0); /* fails where nothing keeps debuggers away */
}

static void tell(uint32_t action) {
  __jit_debug_descriptor.action = action;
  __jit_debug_descriptor.relevant = &entry;
  __jit_debug_descriptor.first = action == CODE_REGISTERED ? &entry : NULL;
  __jit_debug_register_code();
}

void debug_loaded(const uint8_t *file, size_t size, const uint64_t *place) {
  if (!debugged || !(entry.file = malloc(size))) return;
  memcpy(entry.file, file, size);
  entry.size = size;
  const struct elf_header *header = (const struct elf_header *)entry.file;
  struct elf_section *sections = (struct elf_section *)(entry.file + header->section_headers);
  for (uint32_t i = 0; i < header->section_count; i++) sections[i].address = place[i];
  tell(CODE_REGISTERED);
  debug_kernel_is_known();
}

void debug_unloaded(void) {
  if (!entry.file) return;
  tell(CODE_UNREGISTERED);
  free(entry.file);
  entry.file = NULL;
}

void debug_before_exit(void) {
  if (debugged) nanosleep(&(struct timespec){0, EXIT_NS}, NULL);
}

void debug_wait(const struct tec *tec) {
  while (debug_hold && tec->id != 0) nanosleep(&(struct timespec){0, POLL_NS}, NULL);
}
