/* 16-bit floating point formats. */
#ifndef ENGINE_FLOAT16_H
#define ENGINE_FLOAT16_H

#include "libc.h"

/* The exact value of a 16-bit float given by its bits. */
double half_value(uint16_t bits);
double bfloat_value(uint16_t bits);

/* Compiler support functions: round to nearest even; the 16 result bits are the low bits of the returned register. */
float __truncsfbf2(float x);
float __truncdfbf2(double x);
float __truncdfhf2(double x);

#endif
