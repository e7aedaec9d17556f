#include "driver.h"

#define ASID1_BASE (1ull << 32)
#define X3_FIRST (1ull << 33)
#define X3_ALIGN (256ull * PAGE_BYTES)

static uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

static struct place new_buffer(struct memory *memory, uint64_t pa, uint64_t base, uint64_t size) {
  struct place area = {pa, base, round_up(size, PAGE_BYTES), NULL};
  area.data = calloc(1, area.size);
  CHECK(area.data && memory->count < MOST_BUFFERS, "no memory");
  memory->buffers[memory->count++] = area;
  return area;
}

void memory_start(struct memory *memory, bool x3, uint64_t asid0_base, uint64_t top_bytes) {
  *memory = (struct memory){.x3 = x3, .next = {asid0_base, x3 ? X3_FIRST : ASID1_BASE}};
  if (x3) memory_next_job(memory, top_bytes);
}

void memory_next_job(struct memory *memory, uint64_t top_bytes) {
  memory->top_used = 0;
  memory->top = new_buffer(memory, memory->next[1], memory->next[1], top_bytes);
  memory->next[1] += round_up(top_bytes, X3_ALIGN);
}

/* On X2 both ASIDs are filled from their bases on, address 0 included; on X3 other buffers are ASIDs of their own. */
struct place memory_get(struct memory *memory, int asid, uint64_t size) {
  uint64_t bytes = round_up(size ? size : 1, PAGE_BYTES);
  if (memory->x3 && asid == 0) {
    struct place area = {memory->top.pa + memory->top_used, memory->top.pa, size, memory->top.data + memory->top_used};
    memory->top_used += bytes;
    CHECK(memory->top_used <= memory->top.size, "the job's buffer is too small");
    return area;
  }
  uint64_t pa = memory->next[asid], base = memory->x3 ? pa : asid ? ASID1_BASE : memory->buffers[0].base;
  if (!memory->count) base = pa;
  memory->next[asid] += memory->x3 ? round_up(bytes, X3_ALIGN) : bytes;
  return new_buffer(memory, pa, base, size);
}

void memory_free(struct memory *memory, struct place place) {
  for (uint32_t i = 0; i < memory->count; i++)
    if (memory->buffers[i].pa == place.pa) {
      free(memory->buffers[i].data);
      memory->buffers[i] = memory->buffers[--memory->count];
      return;
    }
  CHECK(false, "no such buffer");
}

static struct place *holder(struct memory *memory, uint64_t address, uint64_t size) {
  for (uint32_t i = 0; i < memory->count; i++) {
    struct place *at = &memory->buffers[i];
    if (address >= at->pa && address - at->pa < at->size && size <= at->size - (address - at->pa)) return at;
  }
  return NULL;
}

static int64_t read_bytes(uint64_t address, void *to, size_t size, void *context) {
  struct place *at = holder(context, address, size);
  if (!at) return ((struct memory *)context)->wrong++, -1;
  memcpy(to, at->data + (address - at->pa), size);
  return (int64_t)size;
}

static int64_t write_bytes(uint64_t address, const void *from, size_t size, void *context) {
  struct place *at = holder(context, address, size);
  if (!at) return ((struct memory *)context)->wrong++, -1;
  memcpy(at->data + (address - at->pa), from, size);
  return (int64_t)size;
}

static int64_t zero_bytes(uint64_t address, size_t size, void *context) {
  struct place *at = holder(context, address, size);
  if (!at) return ((struct memory *)context)->wrong++, -1;
  memset(at->data + (address - at->pa), 0, size);
  return (int64_t)size;
}

static size_t asid0_bytes(void *context) { return (void)context, 3ull << 30; }

static bool is_invalid(uint64_t address, void *context) { return !holder(context, address, 1); }

static bool get_info(uint64_t address, uint64_t *base, size_t *size, void *context) {
  struct place *at = holder(context, address, 1);
  if (!at) return ((struct memory *)context)->unknown++, false;
  *base = at->pa;
  *size = at->size;
  return true;
}

mem_interface_t memory_interface(struct memory *memory) {
  return (mem_interface_t){memory, read_bytes, write_bytes, zero_bytes, asid0_bytes, is_invalid, get_info};
}
