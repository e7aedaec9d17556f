/* The model of the AIFF on foreign memory. The first 16 bytes: generation, what may be assumed, whether areas are told first,
 * and the addresses of the chains; memory follows, as the device has it from address 256 on. */
#include "aiff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is told lies in memory. */
static bool look(void *context, const struct aiff_area *area) {
  (void)context;
  if (area->first < 256 || aiff_end(area) < area->first) __builtin_trap();
  return true;
}

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
  uint32_t generation = head[0] & 1, assumed = head[0] >> 1 & 0x1ff;
  if (head[0] >> 10 & 1) compass_aiff(&range, 1, generation, assumed, look, head + 1, message, sizeof message);
  compass_aiff(&range, 1, generation, assumed, NULL, head + 1, message, sizeof message);
  free(memory);
  return 0;
}
