/* What a checked run shares with the parent (compass_runtime/checks/area.py has the same layouts): which buffers there
 * are, and what was found. It lies in the part of the shared file that device memory does not use, so that findings
 * survive a fault. The parent writes `modes` and the regions before a job, the worker the findings. */
#ifndef ENGINE_CHECK_AREA_H
#define ENGINE_CHECK_AREA_H

#include <stdint.h>

#include "ranges.h"

#define CHECK_AREA_OFFSET ENGINE_LOW
#define CHECK_AREA_SIZE 0x00100000u
#define MAX_REGIONS 16384u
#define MAX_FINDINGS 256u

enum check_mode { CHECK_BOUNDS = 1, CHECK_RACE = 2, CHECK_UNINIT = 4, CHECK_DMA = 8, CHECK_ALIGN = 16, CHECK_DIVISION = 32, CHECK_ASSERT = 64 };

struct check_region {
  uint32_t address, size;
  uint32_t is_output; /* its bytes must be initialised when the job ends */
};

enum check_kind {
  KIND_BOUNDS = 1,
  KIND_RACE,
  KIND_ALIGN,
  KIND_UNINIT_STORED,
  KIND_UNINIT_USED,
  KIND_NO_EVENT_FREE,
  KIND_EVENT_NOT_ALLOCATED,
  KIND_EVENT_NEVER_STARTED,
  KIND_EVENT_NOT_WAITED,
  KIND_EVENT_BUSY,
  KIND_DMA_OVERLAP,
  KIND_DMA_STRIDE,
  KIND_DMA_IGNORED,
  KIND_DIVISION,
  KIND_ASSERTION,
  KIND_GROUP_RACE /* its sides have numbers of groups in the place of TECs */
};

enum check_access { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_DMA = 4, ACCESS_ATOMIC = 8 };

/* Who did what, where in `.text`. */
struct check_side {
  uint64_t pc;
  uint32_t tec;
  uint32_t access; /* of enum check_access; 0: there is no such side */
};

/* Which buffer memory belongs to. */
enum check_memory {
  MEMORY_NONE,   /* none that is known */
  MEMORY_REGION, /* a region of the parent's, by its index */
  MEMORY_NAMED,  /* an array of the kernel, by its name */
  MEMORY_STACK   /* the stack of another TEC */
};
struct check_place {
  uint32_t memory; /* enum check_memory */
  uint32_t region;
  int64_t offset; /* from the start of the buffer */
  uint64_t bytes; /* of the buffer */
  char name[64];
};

struct check_finding {
  uint32_t kind; /* enum check_kind */
  uint32_t times;
  struct check_side here, there;
  uint64_t address;
  uint32_t size, item; /* bytes of the access and of one element of it; 0 where it is not about memory */
  int32_t event;       /* number of the event; -1 where it is not about one */
  uint32_t reserved;
  struct check_place place, origin; /* `origin`: where an uninitialised value comes from */
};

struct check_area {
  uint32_t modes; /* of enum check_mode */
  uint32_t region_count;
  uint32_t finding_count;
  uint32_t dropped;                         /* findings for which there was no room */
  struct check_region regions[MAX_REGIONS]; /* sorted by address, no two meet */
  struct check_finding findings[MAX_FINDINGS];
};
_Static_assert(sizeof(struct check_area) <= CHECK_AREA_SIZE, "the area fits");
_Static_assert(sizeof(struct check_finding) == 240, "layout");

#endif
