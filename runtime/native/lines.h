/* From an instruction of a kernel object to the source line it was compiled from. */
#ifndef RUNTIME_LINES_H
#define RUNTIME_LINES_H

#include "system.h"

/* Writes FILE:LINE of the instruction at offset `pc` of the section `.text` of the object that a `.text` of aipu.bin
 * holds; the latter goes from `start` to the end of what may be read. False when it is not known. The content may be
 * damaged, nothing in it is believed. */
bool line_in_text(const uint8_t *start, size_t size, uint64_t pc, char *text, size_t room);

#endif
