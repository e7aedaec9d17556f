#include "pace.h"

#define BRIEF_NS 5000u /* all tasks of a group, one after the other */
#define PARAMETERS 64u /* bytes of a group's parameters that are looked at */
#define GROUPS 64u     /* the last ones are remembered */

static struct habit {
  uint64_t group;
  bool brief;
} habits[GROUPS];
static struct habit *present;
static uint32_t task_count;

static uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

bool pace_begin(const struct task *tasks, uint32_t count) {
  uint64_t words[PARAMETERS / 8] = {0}, hash = mixed((uint64_t)tasks->entry, (uint64_t)tasks->parameters);
  if (is_device_memory((uint64_t)tasks->parameters, PARAMETERS)) memcpy(words, tasks->parameters, PARAMETERS);
  for (uint32_t i = 0; i < PARAMETERS / 8; i++) hash = mixed(hash, words[i]);
  struct habit *habit = &habits[hash % GROUPS];
  if (habit->group != hash) *habit = (struct habit){.group = hash};
  task_count = count;
  present = habit;
  return habit->brief;
}

void pace_end(uint32_t tasks, uint64_t nanoseconds) {
  if (present) present->brief = nanoseconds * task_count < (uint64_t)BRIEF_NS * tasks;
}
