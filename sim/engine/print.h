/* printf of kernels: text per TEC, handed to the parent with the reply. */
#ifndef ENGINE_PRINT_H
#define ENGINE_PRINT_H

#include "tec.h"

/* sim/include/compass/printf.h has the same struct. */
struct print_value {
  uint8_t kind, size; /* i signed, u unsigned, h half, b bfloat16, f float, p pointer; bytes of one element */
  uint16_t lanes;
  uint32_t unused;
  uint8_t bytes[32];
};

/* values[0] is the format string. */
void __compass_printf(uint32_t count, const struct print_value *values);

/* The bytes that all TECs printed. */
uint32_t print_size(void);

/* Forgets what all TECs printed. */
void print_clear(void);

#endif
