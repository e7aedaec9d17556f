#include "check.h"

#include "check_access.h"
#include "check_dma.h"
#include "check_place.h"
#include "check_uninit.h"
#include "schedule.h"
#include "text.h"

bool check_on;
struct check_area *check_area;

bool check_map_shadow(uint64_t at, uint64_t size) {
  return mmap((void *)at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
              0) == (void *)at;
}

bool check_start(int shared_file, char *message, size_t size) {
  void *area = mmap(NULL, CHECK_AREA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, shared_file, CHECK_AREA_OFFSET);
  check_on = area != MAP_FAILED && check_map_shadow(STACK_SHADOW, SHADOWED / 8) &&
             check_map_shadow(RACE_SHADOW, SHADOWED * 12) && check_map_shadow(GROUP_SHADOW, SHADOWED * 12) &&
             check_map_shadow(VALUE_SHADOW, SHADOWED) && check_map_shadow(ORIGIN_SHADOW, SHADOWED);
  check_area = area;
  schedule_in_order = check_on;
  if (!check_on)
    snprintf(message, size, "the host does not give the address space that checks need: %s", strerror(errno));
  return check_on;
}

uint64_t check_pc(const void *address) {
  uint64_t pc = (uint64_t)address - 1;
  return pc >= loaded_object.text_low && pc < loaded_object.text_high ? pc - loaded_object.text_low : NO_PC;
}

void check_begin_job(void) {
  check_area->finding_count = check_area->dropped = 0;
  dma_begin_job();
  access_begin_job();
  if (check_wants(CHECK_UNINIT)) uninit_begin_job();
}

void check_end_job(void) {
  dma_end_job();
  if (check_wants(CHECK_UNINIT)) uninit_end_job();
}

static void call(uint64_t function) { ((void (*)(void))function)(); }

void check_object_loaded(void) {
  places_forget_statics();
  object_each_function("asan.module_ctor", call);
}

void check_begin_group(uint32_t core, bool waits) {
  check_new_phase();
  access_begin_group(core, waits);
  if (check_wants(CHECK_UNINIT)) uninit_begin_group();
}

void check_begin_task(struct tec *tec) {
  memset((void *)(STACK_SHADOW + stack_low(tec->id) / 8), 0, STACK_SIZE / 8);
  dma_begin_task(tec);
  if (check_wants(CHECK_UNINIT)) uninit_begin_task(tec);
}

void check_barrier(struct tec *tec) {
  access_settle(tec);
  dma_at_barrier(tec);
}

void check_end_task(struct tec *tec) {
  access_settle(tec);
  dma_end_task(tec);
}

static bool is_same(const struct check_finding *a, const struct check_finding *b) {
  return a->kind == b->kind && a->here.pc == b->here.pc && a->there.pc == b->there.pc &&
         a->there.access == b->there.access && a->event == b->event && a->place.memory == b->place.memory &&
         a->place.region == b->place.region && strcmp(a->place.name, b->place.name) == 0;
}

void check_report(const struct check_finding *finding) {
  uint32_t count = check_area->finding_count < MAX_FINDINGS ? check_area->finding_count : MAX_FINDINGS;
  for (uint32_t i = 0; i < count; i++) {
    if (!is_same(&check_area->findings[i], finding)) continue;
    check_area->findings[i].times++;
    return;
  }
  if (count == MAX_FINDINGS) {
    check_area->dropped++;
    return;
  }
  check_area->findings[count] = *finding;
  check_area->finding_count = count + 1;
}
