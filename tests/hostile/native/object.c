/* The engine's object loader: what is loaded is asked for its functions and arrays, and unloaded. */
#include "object.h"

#include "debug.h"
#include "exports.h"
#include "tec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int posix_memalign(void **, size_t, size_t);

struct device device = {.shared_bytes = 1u << 18};
static volatile uint64_t seen;

/* Of the rest of the engine: what the loader calls. */
void debug_loaded(const uint8_t *file, size_t size, const uint64_t *place) { (void)file, (void)size, (void)place; }
void debug_unloaded(void) {}
uint64_t find_export(const char *name) { return strcmp(name, "unknown") == 0 ? 0 : 0x401000; }

static void visit_array(const char *name, uint64_t address, uint64_t size) { seen += strlen(name) + address + size; }
static void visit_function(uint64_t address) { seen += address; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct object object;
  char message[MESSAGE_SIZE];
  void *copy;
  if (posix_memalign(&copy, 64, size ? size : 1) != 0) return 0; /* as `.text` lies: its end is the end of the heap block */
  memcpy(copy, data, size);
  if (object_load(&object, copy, size, message)) {
    seen += object_function("__compass_entry_vadd");
    object_each_function("__compass_entry_vadd", visit_function);
    object_each_shared(visit_array);
  } else {
    seen += strlen(message);
  }
  object_unload(&object);
  free(copy);
  return 0;
}
