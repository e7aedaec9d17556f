/* The C library's reader of aipu.bin. */
#include "file.h"

#include "system.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct file file;
  memset(&file, 0, sizeof file);
  if (file_read(&file, data, (uint32_t)size) == AIPU_STATUS_SUCCESS) file_free(&file);
  return 0;
}
