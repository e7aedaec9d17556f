/* The functions that kernel code may call. */
#ifndef ENGINE_EXPORTS_H
#define ENGINE_EXPORTS_H

#include "libc.h"

/* The address of an exported function, 0 when there is none of that name. */
uint64_t find_export(const char *name);

#endif
