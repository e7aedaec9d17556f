/* The report of jobs that ran while profiling was on: how long each took, and what its TECs did. */
#include "plugin.h"

#define HEADING "job,grid,event,tec,id,amount,nanoseconds\n"

/* The kinds of sim/engine/wire.h. */
static const char *const kinds[] = {[RECORD_TASK_BEGIN] = "task begin", [RECORD_TASK_END] = "task end",
                                    [RECORD_COUNT] = "count",           [RECORD_BARRIER] = "barrier",
                                    [RECORD_TRANSFER] = "transfer",     [RECORD_WAIT] = "wait",
                                    [RECORD_SECTION_BEGIN] = "begin",   [RECORD_SECTION_END] = "end"};
#define KINDS (sizeof kinds / sizeof *kinds)

static void add_line(struct profile *profile, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_line(struct profile *profile, const char *format, ...) {
  char line[128];
  va_list arguments;
  va_start(arguments, format);
  size_t size = (size_t)vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (profile->size + size > profile->room) {
    size_t room = (profile->size + size) * 2;
    char *lines = realloc(profile->lines, room);
    if (!lines) return;
    profile->lines = lines;
    profile->room = room;
  }
  memcpy(profile->lines + profile->size, line, size);
  profile->size += size;
}

void profile_add(struct profile *profile, const struct done *done) {
  uint32_t job = profile->jobs++, grid = done->grid;
  for (uint32_t i = 0; i < done->report.record_count; i++) {
    const struct record *record = &done->report.records[i];
    add_line(profile, "%u,%u,%s,%u,%u,%llu,%llu\n", job, grid, record->kind < KINDS ? kinds[record->kind] : "",
             record->tec, record->id, (unsigned long long)record->amount, (unsigned long long)record->time);
  }
  add_line(profile, "%u,%u,job,,,,%llu\n", job, grid, (unsigned long long)done->report.nanoseconds);
}

bool profile_write(struct profile *profile) {
  int how = profile->begun ? O_APPEND : O_TRUNC;
  int file = open(profile->report, O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
  if (file < 0) return false;
  if (!profile->begun) write_all(file, HEADING, sizeof HEADING - 1);
  write_all(file, profile->lines, profile->size);
  profile->begun = true;
  profile->size = 0;
  return close(file) == 0;
}
