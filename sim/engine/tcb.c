#include "tcb.h"

#include "futex.h"
#include "text.h"

/* The fields the simulator reads; they have the same offsets in X2 and X3 blocks. */
struct tcb {
  uint32_t flag, next, unused0, spc, unused1;
  uint16_t group_id, grid_id, unused2[2];
  uint16_t grid_dim[3], group_dim[3], group_id_xyz[3], task_id[3];
  uint32_t sp, pp;
  uint8_t rest[68];
};
_Static_assert(sizeof(struct tcb) == 128, "a task control block has 128 bytes");
_Static_assert(offsetof(struct tcb, group_dim) == 34 && offsetof(struct tcb, task_id) == 46, "layout");
_Static_assert(offsetof(struct tcb, pp) == 56, "layout");

#define FLAG_TYPE(flag) ((flag) & 0xfu)
#define FLAG_GROUP_END 0x40u
#define MAX_BLOCKS 65536u

/* How the two families differ: the type code of a task, and where the block after this one is. */
static uint32_t next_x2(const struct tcb *tcb, uint32_t at) {
  (void)at;
  return tcb->next;
}
static uint32_t next_x3(const struct tcb *tcb, uint32_t at) {
  (void)tcb;
  return at + (uint32_t)sizeof *tcb;
}
static const struct family {
  uint32_t task_type;
  uint32_t (*next)(const struct tcb *, uint32_t at);
} families[] = {[CHAIN_X2] = {1, next_x2}, [CHAIN_X3] = {2, next_x3}};

static enum status refuse(char *message, const char *why, uint32_t at) {
  snprintf(message, MESSAGE_SIZE, "%s (task control block at %#x)", why, at);
  return STATUS_REFUSED;
}

/* What a task block asks for. */
static enum status read_task(const struct tcb *tcb, uint32_t at, uint32_t index, struct task *task, char *message) {
  if (tcb->group_dim[0] == 0 || tcb->group_dim[0] > MAX_TECS)
    return refuse(message, "a task's group does not have 1 to 16 tasks", at);
  if (index >= tcb->group_dim[0]) return refuse(message, "a group has more tasks than it says", at);
  if (!is_device_memory(tcb->pp, 4)) return refuse(message, "a task's parameters lie outside device memory", at);
  *task = (struct task){NULL, (const void *)(uint64_t)tcb->pp, tcb->task_id[0], tcb->group_dim[0], tcb->group_id};
  task->entry = text_entry(tcb->spc, message);
  return task->entry ? STATUS_DONE : STATUS_REFUSED;
}

enum status run_chain(const struct request *request, uint32_t *fault, char *message) {
  if (request->chain != CHAIN_X2 && request->chain != CHAIN_X3)
    return refuse(message, "unknown kind of task chain", request->head);
  const struct family *family = &families[request->chain];
  uint64_t start = now(), deadline = start + request->time_limit;
  if (deadline < start) deadline = UINT64_MAX;
  struct task tasks[MAX_TECS];
  uint32_t count = 0, at = request->head;
  uint32_t limit = request->count ? request->count : MAX_BLOCKS;
  text_begin_job();
  for (uint32_t blocks = 0; at && (request->chain == CHAIN_X2 || blocks < request->count); blocks++) {
    struct tcb tcb;
    if (blocks >= limit) return refuse(message, "the chain is longer than announced", at);
    if (!is_device_memory(at, sizeof tcb)) return refuse(message, "a link of the chain leaves device memory", at);
    memcpy(&tcb, (void *)(uint64_t)at, sizeof tcb);
    if (FLAG_TYPE(tcb.flag) == family->task_type) {
      enum status status = read_task(&tcb, at, count, &tasks[count], message);
      if (status != STATUS_DONE) return status;
      count++;
      if (tcb.flag & FLAG_GROUP_END) {
        if (count != tcb.group_dim[0]) return refuse(message, "a group ends before all its tasks are given", at);
        *fault = run_group(tasks, count, deadline);
        if (*fault == FAULT_NO_THREAD) return refuse(message, "the host cannot start a thread for each TEC", at);
        if (*fault) return STATUS_FAULT;
        count = 0;
      }
    }
    at = family->next(&tcb, at);
  }
  return count ? refuse(message, "the chain ends inside a group", request->head) : STATUS_DONE;
}
