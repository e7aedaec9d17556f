/* 16-bit floating point formats. */
#ifndef ENGINE_FLOAT16_H
#define ENGINE_FLOAT16_H

#include <stdint.h>

/* The exact value of a 16-bit float given by its bits. */
double half_value(uint16_t bits);
double bfloat_value(uint16_t bits);

/* What compilers call where the processor has no instruction. Round to nearest even; the 16 bits of a result or parameter
 * are the low bits of the register. */
float __extendhfsf2(float x);
float __truncsfhf2(float x);
float __truncsfbf2(float x);
float __truncdfbf2(double x);
float __truncdfhf2(double x);

#endif
