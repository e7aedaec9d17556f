/* The model of the AIFF on foreign memory. The first 16 bytes: generation, what may be assumed, and the addresses of the
 * chains; memory follows, as the device has it from address 256 on. */
#include "aiff.h"

int compass_aiff(const struct aiff_range *, uint64_t, uint32_t, uint32_t, uint32_t, const uint32_t *, char *, uint64_t);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  enum { HEAD = 16, MOST = 12288 };
  uint32_t head[4];
  char message[400];
  if (size <= HEAD || size > HEAD + MOST) return 0;
  memcpy(head, data, HEAD);
  uint8_t *memory = malloc(size - HEAD);
  if (!memory) return 0;
  memcpy(memory, data + HEAD, size - HEAD);
  struct aiff_range range = {256, size - HEAD, memory};
  compass_aiff(&range, 1, head[0] & 1, head[0] >> 1 & 0x1ff, 1, head + 1, message, sizeof message);
  free(memory);
  return 0;
}
