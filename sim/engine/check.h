/* Checked runs: kernels compiled with clang's instrumentation, which calls the engine at every access of memory.
 *
 *   check.c         the area shared with the parent, findings, the life of a job
 *   check_place.c   which buffer an address belongs to
 *   check_access.c  accesses: bounds, alignment, data races between TECs and between groups
 *   check_dma.c     transfers and events
 *   check_uninit.c  values that were never written
 *
 * TECs run one at a time, each from barrier to barrier (schedule_in_order), so nothing here needs a lock and the same
 * run finds the same. */
#ifndef ENGINE_CHECK_H
#define ENGINE_CHECK_H

#include "check_area.h"
#include "tec.h"

/* True in a worker that was started for checks. */
extern bool check_on;
extern struct check_area *check_area;

/* Where the worker keeps what it knows of each byte of the low 4 GiB. The first is fixed in the kernel's code too
 * (compass_runtime/checks/build.py). */
#define STACK_SHADOW 0x100000000000u /* clang's: a byte for 8, of stacks only */
#define RACE_SHADOW 0x110000000000u
#define VALUE_SHADOW 0x120000000000u /* a byte for each, its bits set where a value is not initialised */
#define ORIGIN_SHADOW 0x130000000000u
#define GROUP_SHADOW 0x140000000000u
#define SHADOWED 0x100000000u
#define SHADOW_BYTES (SHADOWED / 8 + 2 * SHADOWED * 12 + 2 * SHADOWED)

/* Empties a shadow. False when the host does not give the address space. */
bool check_map_shadow(uint64_t at, uint64_t size);

/* Before system calls are forbidden: maps area and shadows. False with a message when that fails. */
bool check_start(int shared_file, char *message, size_t size);

/* In the main thread: a job begins, it ended; an object was loaded. */
void check_begin_job(void);
void check_end_job(void);
void check_object_loaded(void);

/* A group starts (see access_begin_group); a new phase of it: everything in it that happened before is ordered before
 * everything that follows. */
void check_begin_group(uint32_t core, bool waits);
void check_new_phase(void);

/* In a TEC: its task begins, it is at a barrier, its task ended. */
void check_begin_task(struct tec *tec);
void check_barrier(struct tec *tec);
void check_end_task(struct tec *tec);

/* Records a finding; one that differs from another in TEC and index only is counted. */
void check_report(const struct check_finding *finding);

static inline bool check_wants(enum check_mode mode) { return check_area->modes & mode; }

/* The address of a function that only kernels compiled for checks use; 0 when there is none of that name. */
uint64_t check_export(const char *name);

/* The offset in `.text` of a call that returns to `address`. */
uint64_t check_pc(const void *address);

#endif
