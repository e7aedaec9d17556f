/* Chains of task control blocks in the driver's memory, and the grids they are made of. */
#include "plugin.h"

#define MAX_BLOCKS 65536u
#define HIGH_HALF 0xffffffff00000000ull /* links are 32 bits wide and stay in the region of 4 GiB */

/* Whether bytes lie in one buffer of the driver's: what else is at an address is not ours to ask for. */
static bool in_a_buffer(const mem_interface_t *memory, uint64_t address, size_t size) {
  uint64_t base = 0;
  size_t room = 0;
  return memory->get_info(address, &base, &room, memory->cxt) && address >= base && address - base <= room &&
         size <= room - (address - base);
}

bool read_memory(struct sim_aipu *sim, uint64_t address, void *to, size_t size) {
  const mem_interface_t *memory = &sim->memory;
  if (in_a_buffer(memory, address, size) && memory->read(address, to, size, memory->cxt) >= 0) return true;
  return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "the driver cannot read %zu bytes at %#llx", size,
              (unsigned long long)address),
         false;
}

/* Appends the block at an address; returns it. */
static const uint8_t *add_block(struct sim_aipu *sim, struct chain_copy *chain, uint64_t address) {
  if (chain->count == chain->room) {
    uint32_t room = chain->room * 2 + 16;
    uint8_t *grown = realloc(chain->blocks, (size_t)room * BLOCK);
    if (!grown) return fail(AIPU_STATUS_ERROR_BUF_ALLOC_FAIL, "no host memory for a chain"), NULL;
    chain->blocks = grown;
    chain->room = room;
  }
  uint8_t *block = chain->blocks + (size_t)chain->count * BLOCK;
  if (!read_memory(sim, address, block, BLOCK)) return NULL;
  chain->count++;
  chain->destroys |= (get32(block, FLAG) & END_DESTROYS) != 0;
  return block;
}

bool chain_read(struct sim_aipu *sim, const struct job *job, struct chain_copy *chain) {
  *chain = (struct chain_copy){0};
  uint64_t at = job->head;
  uint32_t most = sim->x3 ? job->count : MAX_BLOCKS;
  if (most > MAX_BLOCKS)
    return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "a chain of %u blocks is too long", most), false;
  for (uint32_t i = 0; i < most; i++) {
    const uint8_t *block = add_block(sim, chain, at);
    if (!block) return false;
    uint32_t next = get32(block, NEXT);
    if (!sim->x3 && !next) return chain->tail = at, true;
    at = sim->x3 ? at + BLOCK : (job->head & HIGH_HALF) | next;
  }
  if (sim->x3) return true;
  return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "the chain has more than %u blocks, or goes in a circle",
              MAX_BLOCKS),
         false;
}

uint16_t chain_grid(const struct chain_copy *chain, uint32_t block) {
  uint16_t grid;
  memcpy(&grid, chain->blocks + (size_t)block * BLOCK + GRID_ID, sizeof grid);
  return grid;
}

/* A grid's block comes first. On X2 there is one for each run of constants, with the same number until the grid ends. */
uint32_t chain_grid_end(const struct sim_aipu *sim, const struct chain_copy *chain, uint32_t first) {
  bool ended = sim->x3;
  for (uint32_t i = first; i < chain->count; i++) {
    uint32_t flag = get32(chain->blocks + (size_t)i * BLOCK, FLAG);
    bool begins = TYPE(flag) == 0;
    if (i > first && begins && (ended || chain_grid(chain, i) != chain_grid(chain, first))) return i;
    ended |= !begins && (flag & GRID_END) != 0;
  }
  return chain->count;
}

uint64_t chain_continuation(struct sim_aipu *sim, uint64_t tail) {
  uint32_t next = 0;
  const mem_interface_t *memory = &sim->memory;
  if (!tail || !in_a_buffer(memory, tail + NEXT, sizeof next)) return 0; /* the driver has freed the chain */
  if (memory->read(tail + NEXT, &next, sizeof next, memory->cxt) < 0) return 0;
  return next ? (tail & HIGH_HALF) | next : 0;
}
