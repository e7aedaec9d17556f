#include "float16.h"

double bfloat_value(uint16_t bits) { return (double)__builtin_bit_cast(float, (uint32_t)bits << 16); }

double half_value(uint16_t bits) {
  uint64_t sign = (uint64_t)(bits >> 15) << 63, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 0) {
    double small = (double)fraction * 0x1p-24;
    return sign ? -small : small;
  }
  uint64_t wide = exponent == 31 ? 2047 : exponent + 1023 - 15;
  return __builtin_bit_cast(double, sign | wide << 52 | fraction << 42);
}

static float low_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }

/* Shifts out `count` bits, rounding to nearest even. */
static uint64_t round_shift(uint64_t value, uint32_t count) {
  if (count > 63) return 0;
  uint64_t kept = value >> count, lost = value & ((1ull << count) - 1), half = 1ull << (count - 1);
  return kept + (lost > half || (lost == half && (kept & 1)));
}

/* The double `x` in a format with `exponent_bits` and `fraction_bits`. */
static uint32_t narrow(double x, int exponent_bits, int fraction_bits) {
  uint64_t bits = __builtin_bit_cast(uint64_t, x), fraction = bits & 0xfffffffffffffull;
  int exponent = (int)(bits >> 52 & 2047), bias = (1 << (exponent_bits - 1)) - 1;
  uint32_t sign = (uint32_t)(bits >> 63) << (exponent_bits + fraction_bits);
  uint32_t infinity = ((1u << exponent_bits) - 1) << fraction_bits;
  uint32_t shift = (uint32_t)(52 - fraction_bits);
  if (exponent == 2047)
    return sign | infinity | (fraction ? (uint32_t)(fraction >> shift) | 1u << (fraction_bits - 1) : 0);
  int wanted = exponent - 1023 + bias;
  if (wanted >= (1 << exponent_bits) - 1) return sign | infinity;
  if (wanted > 0) return sign | (uint32_t)round_shift((uint64_t)wanted << 52 | fraction, shift);
  return exponent ? sign | (uint32_t)round_shift(1ull << 52 | fraction, shift + 1 + (uint32_t)-wanted) : sign;
}

float __extendhfsf2(float x) { return (float)half_value((uint16_t)__builtin_bit_cast(uint32_t, x)); }
float __truncsfhf2(float x) { return low_bits(narrow((double)x, 5, 10)); }
float __truncsfbf2(float x) { return low_bits(narrow((double)x, 8, 7)); }
float __truncdfbf2(double x) { return low_bits(narrow(x, 8, 7)); }
float __truncdfhf2(double x) { return low_bits(narrow(x, 5, 10)); }
