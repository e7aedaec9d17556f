/* Values that were never written, followed through registers and memory by clang's instrumentation (-fsanitize=
 * kernel-memory), which asks for the shadow of memory at each access and names an origin for each value. */
#ifndef ENGINE_CHECK_UNINIT_H
#define ENGINE_CHECK_UNINIT_H

#include "check.h"

void uninit_begin_job(void);
void uninit_begin_group(void);
void uninit_begin_task(struct tec *tec);
void uninit_end_job(void);

/* Looks at what a transfer is asked to do. A transfer moves values that are not initialised as they are. */
void uninit_check_request(const struct tec *tec, const struct dma_request *request, uint64_t pc);
void uninit_transfer(const struct tec *tec, const struct dma_request *request, uint64_t pc);

/* What the AIFF writes is initialised. */
void uninit_written(uint64_t address, uint64_t size);

/* What the instrumentation calls. */
struct metadata {
  uint8_t *values;
  uint32_t *origins;
};
struct metadata __msan_metadata_ptr_for_load_n(uint64_t address, uint64_t size);
struct metadata __msan_metadata_ptr_for_store_n(uint64_t address, uint64_t size);
#define METADATA(size)                                                   \
  struct metadata __msan_metadata_ptr_for_load_##size(uint64_t address); \
  struct metadata __msan_metadata_ptr_for_store_##size(uint64_t address);
METADATA(1)
METADATA(2)
METADATA(4)
METADATA(8)
#undef METADATA
void *__msan_get_context_state(void);
void __msan_poison_alloca(uint64_t address, uint64_t size, const char *name);
void __msan_unpoison_alloca(uint64_t address, uint64_t size);
void __msan_instrument_asm_store(uint64_t address, uint64_t size);
void __compass_declared(void *array);
void __msan_warning(uint32_t origin);
uint32_t __msan_chain_origin(uint32_t origin);
void *__msan_memmove(void *to, const void *from, uint64_t size);
void *__msan_memset(void *to, int value, uint64_t size);

#endif
