#include "tcb.h"

#include "check.h"
#include "schedule.h"
#include "text.h"

/* The fields the simulator reads; they have the same offsets in X2 and X3 blocks. */
struct tcb {
  uint32_t flag, next, unused0, spc, unused1;
  uint16_t group_id, grid_id, unused2[2];
  uint16_t grid_dim[3], group_dim[3], group_id_xyz[3], task_id[3];
  uint32_t sp, pp;
  uint8_t unused3[60];
  uint16_t group_deps[4]; /* X3: groups to wait for, by id */
};
_Static_assert(sizeof(struct tcb) == 128, "a task control block has 128 bytes");
_Static_assert(offsetof(struct tcb, group_dim) == 34 && offsetof(struct tcb, task_id) == 46, "layout");
_Static_assert(offsetof(struct tcb, pp) == 56 && offsetof(struct tcb, group_deps) == 120, "layout");

#define FLAG_TYPE(flag) ((flag) & 0xfu)
#define FLAG_WAIT_PREVIOUS 0x10u
#define FLAG_WAIT_ALL 0x20u
#define FLAG_GROUP_END 0x40u
#define DEPENDENCY_VALID 0x8000u
#define MAX_BLOCKS 65536u

/* A group of tasks on its way to a core. */
struct group {
  struct tcb head; /* its first task's block */
  struct task tasks[MAX_TECS];
  uint32_t count;
};
static uint16_t group_of_core[MAX_TECS]; /* the group that a busy core runs */

#define ALL_CORES ((1u << device.cores) - 1)

/* How the two families differ: the type code of a task, where the block after this one is, which cores a group waits
 * for before it starts, and which core runs it (0: any that is idle). */
static uint32_t next_x2(const struct tcb *tcb, uint32_t at) {
  (void)at;
  return tcb->next;
}
static uint32_t next_x3(const struct tcb *tcb, uint32_t at) {
  (void)tcb;
  return at + (uint32_t)sizeof *tcb;
}
static uint32_t predecessors_x2(const struct tcb *tcb) {
  (void)tcb;
  return ALL_CORES; /* groups start in order, so waiting for all that run includes the one before */
}
static uint32_t predecessors_x3(const struct tcb *tcb) {
  uint32_t found = 0;
  for (uint32_t core = 0; core < device.cores; core++)
    for (int i = 0; i < 4; i++)
      if (cores[core].party && tcb->group_deps[i] == (DEPENDENCY_VALID | group_of_core[core])) found |= 1u << core;
  return found;
}
static uint32_t core_x2(const struct tcb *tcb) { return 1u << tcb->group_id % device.cores; }
static uint32_t core_x3(const struct tcb *tcb) {
  (void)tcb;
  return 0;
}
static const struct family {
  uint32_t task_type;
  uint32_t (*next)(const struct tcb *, uint32_t at);
  uint32_t (*predecessors)(const struct tcb *);
  uint32_t (*core)(const struct tcb *);
} families[] = {[CHAIN_X2] = {1, next_x2, predecessors_x2, core_x2},
                [CHAIN_X3] = {2, next_x3, predecessors_x3, core_x3}};

static enum status refuse(char *message, const char *why, uint32_t at) {
  snprintf(message, MESSAGE_SIZE, "%s (task control block at %#x)", why, at);
  return STATUS_REFUSED;
}

/* What a task block asks for. */
static enum status read_task(const struct tcb *tcb, uint32_t at, uint32_t index, struct task *task, char *message) {
  if (tcb->group_dim[0] == 0 || tcb->group_dim[0] > device.tecs_per_core)
    return refuse(message, "a task's group has no tasks, or more than a core has TECs", at);
  if (index >= tcb->group_dim[0]) return refuse(message, "a group has more tasks than it says", at);
  if (!is_device_memory(tcb->pp, 4)) return refuse(message, "a task's parameters lie outside device memory", at);
  *task = (struct task){NULL, (const void *)(uint64_t)tcb->pp, tcb->task_id[0], tcb->group_dim[0], tcb->group_id};
  task->entry = text_entry(tcb->spc, message);
  return task->entry ? STATUS_DONE : STATUS_REFUSED;
}

/* Whether a group waits for others, which may have ended by now. */
static bool is_ordered(const struct family *family, const struct tcb *head) {
  if (head->flag & FLAG_WAIT_ALL || !(head->flag & FLAG_WAIT_PREVIOUS)) return head->flag & FLAG_WAIT_ALL;
  bool depends = family == &families[CHAIN_X2];
  for (int i = 0; i < 4; i++) depends |= (head->group_deps[i] & DEPENDENCY_VALID) != 0;
  return depends;
}

/* Waits for the cores a group depends on, and starts it. */
static void dispatch(const struct family *family, const struct group *group) {
  const struct tcb *head = &group->head;
  bool alone = schedule_on || loaded_object.data_high > loaded_object.data_low; /* static storage exists once */
  uint32_t wait = head->flag & FLAG_WAIT_ALL || alone ? ALL_CORES
                  : head->flag & FLAG_WAIT_PREVIOUS   ? family->predecessors(head)
                                                      : 0;
  if (wait) wait_for_cores(wait);
  wait_for_cores(family->core(head));
  uint32_t core = 0, wanted = family->core(head);
  while (wanted ? !(wanted >> core & 1) : cores[core].party != 0) core++;
  group_of_core[core] = head->group_id;
  if (check_on) check_begin_group(family->core(head), is_ordered(family, head));
  start_group(&cores[core], group->tasks, group->count);
}

/* Adds a task to the group, which starts with its last one. */
static enum status take_task(const struct family *family, struct group *group, const struct tcb *tcb, uint32_t at,
                             char *message) {
  if (!text_is_loaded(tcb->spc)) wait_for_cores(ALL_CORES);
  enum status status = read_task(tcb, at, group->count, &group->tasks[group->count], message);
  if (status != STATUS_DONE) return status;
  if (group->count++ == 0) group->head = *tcb;
  if (!(tcb->flag & FLAG_GROUP_END)) return STATUS_DONE;
  if (group->count != tcb->group_dim[0]) return refuse(message, "a group ends before all its tasks are given", at);
  dispatch(family, group);
  group->count = 0;
  return STATUS_DONE;
}

/* Walks the blocks and starts all groups; those of the last ones may still run. */
static enum status start_chain(const struct request *request, char *message) {
  const struct family *family = &families[request->chain];
  struct group group = {.count = 0};
  uint32_t at = request->head;
  uint32_t limit = request->count ? request->count : MAX_BLOCKS;
  for (uint32_t blocks = 0; at && (request->chain == CHAIN_X2 || blocks < request->count); blocks++) {
    struct tcb tcb;
    if (blocks >= limit) return refuse(message, "the chain is longer than announced", at);
    if (!is_device_memory(at, sizeof tcb)) return refuse(message, "a link of the chain leaves device memory", at);
    memcpy(&tcb, (void *)(uint64_t)at, sizeof tcb);
    if (FLAG_TYPE(tcb.flag) == family->task_type) {
      enum status status = take_task(family, &group, &tcb, at, message);
      if (status != STATUS_DONE) return status;
    }
    at = family->next(&tcb, at);
  }
  return group.count ? refuse(message, "the chain ends inside a group", request->head) : STATUS_DONE;
}

enum status run_chain(const struct request *request, char *message) {
  if (request->chain != CHAIN_X2 && request->chain != CHAIN_X3)
    return refuse(message, "unknown kind of task chain", request->head);
  text_begin_job();
  enum status status = start_chain(request, message);
  wait_for_cores(ALL_CORES); /* of a refused chain, too, groups may run */
  return status;
}
