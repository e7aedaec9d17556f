#include "schedule.h"

#include "events.h"
#include "futex.h"
#include "signals.h"
#include "text.h"

#define TRAP_FLAG 0x100u
#define LONGEST_SLICE_BITS 11   /* a slice of single steps has up to 2^11 instructions of the kernel */
#define STEPS_PER_INSTRUCTION 8 /* what the functions it calls may add, on average */

bool schedule_on, schedule_in_order;

/* All of this belongs to the TEC whose turn it is. Bit i of the sets stands for TEC i. */
static uint64_t random_state;
static uint32_t ready, blocked;
static uint32_t instructions_left, steps_left;

static _Atomic uint32_t turns[MAX_TECS]; /* 1: it is this TEC's turn */

/* splitmix64 */
static uint64_t draw(void) {
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static void clear_shared(const char *, uint64_t address, uint64_t size) { memset((void *)address, 0, size); }

/* What earlier jobs left in the TECs' own and shared memory would make results depend on more than the order, and hide
 * that a TEC reads too early what is the same in every run. */
static void clear_memory(void) {
  for (uint32_t i = 0; i < device.cores * device.tecs_per_core; i++)
    memset((void *)(stack_low(i) + PAGE), 0, STACK_SIZE - PAGE);
  object_each_shared(clear_shared);
}

void schedule_begin_job(uint64_t seed) {
  schedule_on = seed != 0 || schedule_in_order;
  random_state = seed;
  if (seed) clear_memory();
}

static void give_turn(void) {
  uint32_t which = schedule_in_order ? 0 : (uint32_t)(draw() % (uint32_t)__builtin_popcount(ready)), left = ready;
  while (which--) left &= left - 1;
  _Atomic uint32_t *turn = &turns[__builtin_ctz(left)];
  atomic_store(turn, 1);
  futex_wake_all(turn);
}

/* The start of a slice: some transfers on their way arrive, and every other slice ends after some instructions. */
static void wait_for_turn(struct tec *tec) {
  _Atomic uint32_t *turn = &turns[tec->id];
  while (atomic_load(turn) == 0) futex_wait(turn, 0, NULL);
  atomic_store(turn, 0);
  if (schedule_in_order) return;
  uint64_t chance = draw();
  finish_events(tec, (uint32_t)(chance & chance >> 8) & ALL_EVENTS);
  uint32_t bits = 1 + (uint32_t)(chance >> 16) % LONGEST_SLICE_BITS;
  instructions_left = chance >> 63 ? 1 + (uint32_t)(chance >> 32) % (1u << bits) : 0;
  steps_left = STEPS_PER_INSTRUCTION * instructions_left + 64;
}

static inline void single_step(bool on) {
  uint64_t flags = __builtin_ia32_readeflags_u64() & ~(uint64_t)TRAP_FLAG;
  __builtin_ia32_writeeflags_u64(on ? flags | TRAP_FLAG : flags);
}

void schedule_begin_group(uint32_t first, uint32_t count) {
  ready = ((1u << count) - 1) << first;
  blocked = 0;
  give_turn();
}

void schedule_enter(struct tec *tec) {
  wait_for_turn(tec);
  single_step(instructions_left != 0);
}

static void switch_turn(void) {
  single_step(false);
  give_turn();
  wait_for_turn(current_tec());
  single_step(instructions_left != 0);
}

void schedule_change_turn(void) {
  if (!schedule_in_order) switch_turn();
}

void schedule_block(void) {
  struct tec *tec = current_tec();
  ready &= ~(1u << tec->id);
  blocked |= 1u << tec->id;
  single_step(false);
  if (ready) give_turn();
  wait_for_turn(tec);
  single_step(instructions_left != 0);
}

void schedule_release(void) {
  ready |= blocked;
  blocked = 0;
  switch_turn();
}

void schedule_leave(struct tec *tec) {
  single_step(false);
  ready &= ~(1u << tec->id);
  if (ready) give_turn();
}

void schedule_after_step(uint64_t *registers) {
  uint64_t pc = registers[REGISTER_PC];
  struct tec *tec = current_tec();
  bool in_kernel = pc >= loaded_object.text_low && pc < loaded_object.text_high;
  if (tec && instructions_left) {
    steps_left--;
    instructions_left -= in_kernel || !steps_left;
    if (instructions_left) return;
    if (in_kernel) {
      give_turn();
      wait_for_turn(tec);
    }
  }
  registers[REGISTER_FLAGS] &= ~(uint64_t)TRAP_FLAG;
  if (tec && instructions_left) registers[REGISTER_FLAGS] |= TRAP_FLAG;
}
