#include "plugin.h"

static const char *const level_names[] = {"error", "warning", "info", "debug"};

/* Errors are always seen. The file is made by the first line, so that runs without any leave nothing behind. */
void log_write(struct sim_aipu *sim, int level, const char *format, ...) {
  struct log *log = &sim->log;
  char text[700], line[750], path[SIM_AIPU_PATH_MAX + 32];
  if (level > log->level && level > SIM_AIPU_LOG_ERROR) return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  for (char *at = text; *at; at++)
    if ((unsigned char)*at < ' ' || *at == 127) *at = '?'; /* names in it may come from a damaged file */
  int size = snprintf(line, sizeof line, "compass simulator: %s: %s\n", level_names[level], text);
  pthread_mutex_lock(&log->lock);
  if (level == SIM_AIPU_LOG_ERROR || log->verbose) write_all(2, line, (size_t)size);
  if (log->file < 0 && log->folder[0]) {
    snprintf(path, sizeof path, "%s/compass_simulator.log", log->folder);
    log->file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log->file < 0) log->folder[0] = 0;
  }
  if (log->file >= 0) write_all(log->file, line, (size_t)size);
  pthread_mutex_unlock(&log->lock);
}

void log_close(struct sim_aipu *sim) {
  if (sim->log.file >= 0) close(sim->log.file);
}
