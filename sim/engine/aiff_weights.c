#include "aiff.h"

/* The next `bits` bits of a stream, least significant first; -1 at its end. */
static int32_t next_code(const uint8_t *stream, uint64_t bytes, uint64_t *at, uint32_t bits) {
  if (*at + bits > bytes * 8) return -1;
  uint64_t byte = *at / 8;
  uint32_t word = stream[byte] | (byte + 1 < bytes ? (uint32_t)stream[byte + 1] << 8 : 0);
  uint32_t code = word >> *at % 8 & ((1u << bits) - 1);
  *at += bits;
  return (int32_t)code;
}

/* A code is a weight in two's complement, but the smallest of all: it says that a weight of ten bits follows in two
 * codes, the lower bits first. */
bool aiff_unpack(const uint8_t *stream, uint64_t bytes, uint32_t bits, int8_t *weights, uint64_t count) {
  if (bits == 0) {
    if (bytes < count) return false;
    memcpy(weights, stream, count);
    return true;
  }
  const int32_t escape = 1 << (bits - 1);
  uint64_t at = 0;
  for (uint64_t i = 0; i < count; i++) {
    int32_t code = next_code(stream, bytes, &at, bits);
    if (code < 0) return false;
    int32_t weight = (code ^ escape) - escape;
    if (code == escape) {
      int32_t low = next_code(stream, bytes, &at, bits), high = next_code(stream, bytes, &at, bits);
      if (low < 0 || high < 0) return false;
      int32_t field = low | high << bits;
      if (field >> 10) return false;
      weight = (field ^ 0x200) - 0x200;
    }
    if (weight < INT8_MIN || weight > INT8_MAX) return false;
    weights[i] = (int8_t)weight;
  }
  return true;
}
