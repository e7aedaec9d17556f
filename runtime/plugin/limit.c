#include "limit.h"

#include "system.h"

#ifndef COMPASS_DEFAULT_TIMEOUT
#error "COMPASS_DEFAULT_TIMEOUT is to be the seconds that a job may take when COMPASS_TIMEOUT does not say so"
#endif
#define MOST_SECONDS 1e9

double time_limit(const char **wrong) {
  const char *text = getenv(TIME_LIMIT);
  *wrong = NULL;
  if (!text || !*text) return COMPASS_DEFAULT_TIMEOUT;
  char *end;
  double seconds = strtod(text, &end);
  if (!*end && seconds > 0 && seconds < MOST_SECONDS) return seconds;
  *wrong = text;
  return COMPASS_DEFAULT_TIMEOUT;
}
