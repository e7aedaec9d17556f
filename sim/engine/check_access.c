#include "check_access.h"

#include "check_dma.h"
#include "check_place.h"
#include "memory_map.h"

/* What is known of each byte that several can reach: who first read and who first wrote it in the present phase,
 * and who wrote it at all. As one is done with a phase before the next one begins it, the first one is the one that
 * others meet. A stamp has the phase, who it was and a number for the place in the code. */
struct history {
  uint32_t reader, writer; /* stamps; 0: nobody */
  uint16_t writers;        /* one bit for each; of the phase in `writer` */
  uint16_t atomics;        /* those of them that wrote by atomic operations alone */
};

/* Those whose accesses nothing orders in a phase: the TECs of a group between two barriers; the groups that wait for none
 * of each other, whose phase is the launch of all of them. */
static struct company {
  uint64_t shadow;
  enum check_kind kind; /* of a finding */
  uint32_t phase;
} tecs_of_group = {RACE_SHADOW, KIND_RACE, 1}, groups_of_launch = {GROUP_SHADOW, KIND_GROUP_RACE, 1};
static uint32_t group_of_launch; /* the one that runs, and a bit per core that those before it were on */
static uint32_t cores_of_launch;

#define HISTORY(company, address) ((struct history *)((company)->shadow + (address) * sizeof(struct history)))
#define STAMP(company, who, site) ((company)->phase << 20 | (who) << 16 | (site))
#define STAMP_PHASE(stamp) ((stamp) >> 20)
#define STAMP_WHO(stamp) ((stamp) >> 16 & 0xfu)
#define MOST_GROUPS 16u
#define NO_GROUP UINT32_MAX /* and one more is the first */
#define STAMP_SITE(stamp) ((stamp) & 0xffffu)
#define LAST_PHASE 0xfffu
#define MAX_SITES 0x10000u
#define BY_DMA (1ull << 63) /* in the place of an access that the DMA unit makes */

static uint64_t site_pcs[MAX_SITES];
static uint32_t sites; /* site 0: all places beyond the table's end */

static void forget(struct company *company) {
  company->phase = 1;
  check_map_shadow(company->shadow, SHADOWED * sizeof(struct history));
}

static void next_phase(struct company *company) {
  if (company->phase == LAST_PHASE)
    forget(company);
  else
    company->phase++;
}

void access_begin_job(void) {
  forget(&tecs_of_group);
  forget(&groups_of_launch);
  group_of_launch = NO_GROUP;
  cores_of_launch = 0;
}

void check_new_phase(void) { next_phase(&tecs_of_group); }

void access_begin_group(uint32_t core, bool waits) {
  bool follows = waits || (core & cores_of_launch) || group_of_launch + 1 == MOST_GROUPS;
  if (follows) next_phase(&groups_of_launch);
  group_of_launch = follows ? 0 : group_of_launch + 1;
  cores_of_launch = follows ? core : cores_of_launch | core;
}

#define SLOTS 0x20000u /* of a table with open addressing */
uint32_t site_of(uint64_t pc) {
  static uint32_t slots[SLOTS];
  uint32_t at = (uint32_t)(pc * 0x9e3779b1u) % SLOTS;
  for (; slots[at]; at = (at + 1) % SLOTS)
    if (site_pcs[slots[at]] == pc) return slots[at];
  if (sites + 1 == MAX_SITES) return 0;
  site_pcs[slots[at] = ++sites] = pc;
  return sites;
}

uint64_t site_pc(uint32_t site) { return site && site_pcs[site] != NO_PC ? site_pcs[site] & ~BY_DMA : NO_PC; }

/* ---------------------------------------------------------------------------------------------------------- reports */

void access_report(enum check_kind kind, const struct tec *tec, const struct access *access,
                   const struct check_side *there) {
  struct check_finding finding = {.kind = kind, .times = 1, .event = -1};
  finding.here = (struct check_side){access->pc, kind == KIND_GROUP_RACE ? group_of_launch : tec->id, access->kind};
  if (there) finding.there = *there;
  finding.address = access->address;
  finding.size = access->size;
  finding.item = access->item;
  place_describe(tec, access->address, &finding.place);
  check_report(&finding);
}

static struct check_side side_of(uint32_t stamp, uint32_t kind) {
  uint32_t site = STAMP_SITE(stamp);
  return (struct check_side){site_pc(site), STAMP_WHO(stamp), kind | (site_pcs[site] & BY_DMA ? ACCESS_DMA : 0)};
}

/* ------------------------------------------------------------------------------------------------------ same values */

/* Writes that may turn out to change nothing: what was there before, and the report if it is not there afterwards. */
struct doubt {
  struct access access;
  enum check_kind kind;
  uint32_t meets; /* stamp of the other write */
};
static struct doubts {
  struct doubt *list;
  uint32_t count, room;
  uint8_t *old;
  size_t old_size, old_room;
} doubts;

static bool grow(void **memory, size_t *room, size_t need, size_t item) {
  if (need <= *room) return true;
  void *more = regrow(*memory, *room * item, need * 2 * item);
  if (!more) return false;
  *memory = more;
  *room = need * 2;
  return true;
}

static void doubt(const struct access *access, enum check_kind kind, uint32_t meets) {
  size_t room = doubts.room;
  if (!grow((void **)&doubts.list, &room, doubts.count + 1u, sizeof *doubts.list) ||
      !grow((void **)&doubts.old, &doubts.old_room, doubts.old_size + access->size, 1))
    return;
  doubts.room = (uint32_t)room;
  doubts.list[doubts.count++] = (struct doubt){*access, kind, meets};
  memcpy(doubts.old + doubts.old_size, (void *)access->address, access->size);
  doubts.old_size += access->size;
}

void access_settle(struct tec *tec) {
  const uint8_t *old = doubts.old;
  for (uint32_t i = 0; i < doubts.count; i++) {
    struct access *access = &doubts.list[i].access;
    const uint8_t *now = (const uint8_t *)access->address;
    uint32_t at = 0;
    while (at < access->size && now[at] == old[at]) at++;
    old += access->size;
    if (at == access->size) continue;
    struct check_side there = side_of(doubts.list[i].meets, ACCESS_WRITE);
    uint32_t skip = at - at % (access->item ? access->item : 1);
    struct access changed = *access;
    changed.address += skip;
    changed.size -= skip;
    access_report(doubts.list[i].kind, tec, &changed, &there);
  }
  doubts.count = 0;
  doubts.old_size = 0;
}

/* ------------------------------------------------------------------------------------------------------------ races */

/* The stamp of what one byte's access meets, else 0. `*write`: whether that was a write. Takes note of the access. */
static uint32_t meet(struct history *h, uint32_t phase, uint32_t who, uint32_t stamp, uint32_t kind, bool *write) {
  bool read = STAMP_PHASE(h->reader) == phase, written = STAMP_PHASE(h->writer) == phase;
  bool writes = kind & ACCESS_WRITE, atomic = kind & ACCESS_ATOMIC;
  uint32_t met = 0, own = 1u << who;
  *write = false;
  if (!written) h->writers = h->atomics = 0;
  uint32_t plain = h->writers & ~(uint32_t)h->atomics;
  bool wrote = plain & own, meets_write = atomic ? plain & ~own : written && STAMP_WHO(h->writer) != who;
  if (meets_write && (writes || !wrote)) {
    met = h->writer;
    *write = true;
  } else if (writes && read && STAMP_WHO(h->reader) != who && !(plain >> STAMP_WHO(h->reader) & 1)) {
    met = h->reader;
  }
  if (writes) {
    if (!written) h->writer = stamp;
    if (!atomic)
      h->atomics &= (uint16_t)~own;
    else if (!wrote)
      h->atomics |= (uint16_t)own;
    h->writers |= (uint16_t)own;
  } else if (!read || plain >> STAMP_WHO(h->reader) & 1) {
    h->reader = stamp;
  }
  return met;
}

/* The common cases of `meet`: in this phase nobody was here before, or only this one, or all that came have read. */
static inline bool is_alone(struct history *h, uint32_t phase, uint32_t own_bit, uint32_t stamp, bool writes) {
  bool read = STAMP_PHASE(h->reader) == phase;
  if (STAMP_PHASE(h->writer) == phase) return h->writers == own_bit && !h->atomics;
  if (writes && read) return false;
  if (writes) {
    h->writer = stamp;
    h->writers = (uint16_t)own_bit;
    h->atomics = 0;
  } else if (!read) {
    h->reader = stamp;
  }
  return true;
}

static void races(const struct company *company, uint32_t who, struct tec *tec, const struct access *access) {
  bool writes = access->kind & ACCESS_WRITE, sure = false, met_write = false;
  uint32_t site = site_of(access->pc | (access->kind & ACCESS_DMA ? BY_DMA : 0));
  uint32_t stamp = STAMP(company, who, site), phase = company->phase, met = 0, at = 0;
  for (uint32_t i = 0; i < access->size; i++) {
    bool write;
    struct history *h = HISTORY(company, access->address + i);
    if (!(access->kind & ACCESS_ATOMIC) && is_alone(h, phase, 1u << who, stamp, writes)) continue;
    uint32_t other = meet(h, phase, who, stamp, access->kind, &write);
    if (!other || sure || (met && writes && write)) continue;
    met = other;
    met_write = write;
    sure = !(writes && write);
    at = i;
  }
  if (!met) return;
  if (!sure) {
    doubt(access, company->kind, met);
    return;
  }
  struct check_side there = side_of(met, met_write ? ACCESS_WRITE : ACCESS_READ);
  struct access part = *access;
  part.address += at - (access->item ? at % access->item : 0);
  part.size = access->item && access->item < access->size ? access->item : access->size;
  access_report(company->kind, tec, &part, &there);
}

void access_races(struct tec *tec, const struct access *access) {
  if (is_stack(access->address) || access->address + access->size > SHADOWED) return;
  races(&tecs_of_group, tec->id, tec, access);
  if (device.cores > 1 && is_device_memory((uint32_t)access->address, access->size))
    races(&groups_of_launch, group_of_launch, tec, access);
}

/* -------------------------------------------------------------------------------------------------------------- all */

bool access_in_bounds(const struct tec *tec, const struct access *access) {
  if (!check_wants(CHECK_BOUNDS) || access->size == 0 || place_is_valid(tec, access->address, access->size))
    return true;
  access_report(KIND_BOUNDS, tec, access, NULL);
  return false;
}

bool access_check(struct tec *tec, const struct access *access) {
  access_settle(tec);
  if (!access_in_bounds(tec, access)) return false;
  if (check_wants(CHECK_RACE)) {
    if (tec->events_pending) dma_meets(tec, access);
    access_races(tec, access);
  }
  return true;
}

/* What clang's instrumentation calls before each access. Of larger ones the size of an element is not known. */
#define LARGEST_SCALAR 4u
static void plain(uint64_t address, uint64_t size, uint32_t kind, const void *caller) {
  struct tec *tec = current_tec();
  struct access access = {address, check_pc(caller), (uint32_t)size, size <= LARGEST_SCALAR ? (uint32_t)size : 0, kind};
  if (tec) access_check(tec, &access);
}

#define CHECKED(size)                                                                                          \
  void __asan_load##size##_noabort(uint64_t at) { plain(at, size, ACCESS_READ, __builtin_return_address(0)); } \
  void __asan_store##size##_noabort(uint64_t at) { plain(at, size, ACCESS_WRITE, __builtin_return_address(0)); }
CHECKED(1)
CHECKED(2)
CHECKED(4)
CHECKED(8)
CHECKED(16)
void __asan_loadN_noabort(uint64_t at, uint64_t size) { plain(at, size, ACCESS_READ, __builtin_return_address(0)); }
void __asan_storeN_noabort(uint64_t at, uint64_t size) { plain(at, size, ACCESS_WRITE, __builtin_return_address(0)); }
void *__asan_memcpy(void *to, const void *from, uint64_t size) {
  plain((uint64_t)from, size, ACCESS_READ, __builtin_return_address(0));
  plain((uint64_t)to, size, ACCESS_WRITE, __builtin_return_address(0));
  return memmove(to, from, size);
}
void *__asan_memset(void *to, int value, uint64_t size) {
  plain((uint64_t)to, size, ACCESS_WRITE, __builtin_return_address(0));
  return memset(to, value, size);
}

/* The shadow of large gaps between variables of a frame. */
#define SET_SHADOW(code) \
  void __asan_set_shadow_##code(uint8_t *at, uint64_t size) { memset(at, 0x##code, size); }
SET_SHADOW(00)
SET_SHADOW(f1)
SET_SHADOW(f2)
SET_SHADOW(f3)
SET_SHADOW(f5)
SET_SHADOW(f8)
void __asan_handle_no_return(void) {}

void __ubsan_handle_type_mismatch_v1(const struct typed_access *typed, uint64_t address) {
  struct tec *tec = current_tec();
  uint32_t item = 1u << typed->alignment_log;
  struct access access = {address, check_pc(__builtin_return_address(0)), item, item,
                          typed->is_store ? ACCESS_WRITE : ACCESS_READ};
  if (tec && check_wants(CHECK_ALIGN)) access_report(KIND_ALIGN, tec, &access, NULL);
}

void __compass_checked_atomic(void *at, const void *pc) {
  struct tec *tec = current_tec();
  struct access access = {(uint64_t)at, check_pc(pc), 4, 4, ACCESS_READ | ACCESS_WRITE | ACCESS_ATOMIC};
  if (!tec) return;
  if (check_wants(CHECK_ALIGN) && access.address % access.item) access_report(KIND_ALIGN, tec, &access, NULL);
  access_check(tec, &access);
}

/* The text of an assertion lies in both names of the finding, one after the other. */
void __compass_assertion_failed(const char *text) {
  struct tec *tec = current_tec();
  struct check_finding finding = {.kind = KIND_ASSERTION, .times = 1, .event = -1};
  finding.here.pc = check_pc(__builtin_return_address(0));
  if (!tec || !check_wants(CHECK_ASSERT)) return;
  finding.here.tec = tec->id;
  size_t room = sizeof finding.place.name - 1, length = strlen(text);
  memcpy(finding.place.name, text, length < room ? length : room);
  if (length > room) memcpy(finding.origin.name, text + room, length - room < room ? length - room : room);
  check_report(&finding);
}

void __compass_divided_by_zero(void) {
  struct tec *tec = current_tec();
  struct check_finding finding = {.kind = KIND_DIVISION, .times = 1, .event = -1};
  finding.here.pc = check_pc(__builtin_return_address(0));
  if (!tec || !check_wants(CHECK_DIVISION)) return;
  finding.here.tec = tec->id;
  check_report(&finding);
}

static bool copy_lane(struct tec *tec, const struct access *access, uint8_t *value) {
  if (check_wants(CHECK_ALIGN) && access->address % access->item) access_report(KIND_ALIGN, tec, access, NULL);
  if (!access_check(tec, access)) return false;
  if (access->kind == ACCESS_READ)
    memcpy(value, (void *)access->address, access->size);
  else
    memcpy((void *)access->address, value, access->size);
  return true;
}

void __compass_checked_lanes(uint8_t *value, const void *base, int64_t step, const uint16_t *offsets,
                             const uint8_t *mask, uint32_t shape, const void *pc) {
  struct tec *tec = current_tec();
  uint32_t lanes = shape & 0xff, item = shape >> 8 & 0xff, kind = shape >> 16, first = 0;
  struct access access = {.pc = check_pc(pc), .item = item, .kind = kind};
  while (first < lanes) {
    uint32_t end = first + 1;
    if (mask[first] & 1) {
      access.address = (uint64_t)base + (uint64_t)(offsets ? offsets[first] : (int64_t)first * step);
      while (!offsets && step == item && end < lanes && mask[end] & 1) end++;
      access.size = (end - first) * item;
      copy_lane(tec, &access, value + first * item);
    }
    first = end;
  }
  access_settle(tec);
}
