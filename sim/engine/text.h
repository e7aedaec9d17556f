/* The content of `.text` in device memory: entry records around one object (docs/internals/files.md, aipu.bin). */
#ifndef ENGINE_TEXT_H
#define ENGINE_TEXT_H

#include "object.h"
#include "tec.h"

/* The object that is loaded; all zero when there is none. */
extern struct object loaded_object;

/* Call once per job, before `text_entry`: what lies in device memory may have changed since the last one, and static
 * storage starts the job as the object has it. */
void text_begin_job(void);

/* Whether `text_entry` would leave the loaded object in place. */
bool text_is_loaded(uint32_t spc);

/* The function that the entry record at device address `spc` names, loading its object when it is not the loaded one.
 * NULL with a message when something is wrong. */
kernel_entry *text_entry(uint32_t spc, char *message);

#endif
