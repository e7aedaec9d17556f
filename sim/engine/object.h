/* A kernel object: loads an ELF64 relocatable file into the code area, with every offset in it checked. */
#ifndef ENGINE_OBJECT_H
#define ENGINE_OBJECT_H

#include "memory_map.h"

#define MESSAGE_SIZE 240
struct object {
  uint64_t text_low, text_high; /* where the section `.text` lies */
  uint64_t data_low, data_high; /* writable sections */
  uint64_t area_high;           /* end of what is mapped, from ENGINE_LOW */
};

/* Loads `size` bytes of ELF at `file`, replacing what was loaded before. False with a message when the file is damaged
 * or needs something the engine does not have. The file must stay in place while `object_entry` is used. */
bool object_load(struct object *object, const uint8_t *file, size_t size, char *message);
void object_unload(struct object *object);

/* The address of a function the loaded object defines; 0 when it defines none of that name. */
uint64_t object_function(const char *name);

/* Visits every shared array of a kernel (a static array called KERNEL.ARRAY). */
void object_each_shared(void (*visit)(const char *name, uint64_t address, uint64_t size));

/* Visits every function of that name. */
void object_each_function(const char *name, void (*visit)(uint64_t address));

#endif
