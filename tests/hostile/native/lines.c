/* The C library's reader of line tables. The first two bytes say which instruction is asked for; `.text` follows. */
#include "lines.h"

#include "system.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int posix_memalign(void **, size_t, size_t);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static volatile size_t seen;
  char place[4096] = "";
  void *copy;
  if (size < 2 || posix_memalign(&copy, 64, size) != 0) return 0;
  memcpy(copy, data + 2, size - 2);
  memset((char *)copy + size - 2, 0, 2);
  if (line_in_text(copy, size - 2, data[0] | (uint64_t)data[1] << 8, place, sizeof place)) seen += strlen(place);
  free(copy);
  return 0;
}
