/* What went wrong with a call: the text and the code that its client is told. */
#ifndef DAEMON_FAILURE_H
#define DAEMON_FAILURE_H

#include "os.h"

struct failure {
  const char *type, *code; /* class of the exception, and code, as the server in Python names them */
  char message[600], help[160];
};

/* Sets a failure; returns false, so that it can be returned. */
__attribute__((format(printf, 3, 4))) static inline bool wrong(struct failure *failure, const char *code,
                                                               const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(failure->message, sizeof failure->message, format, arguments);
  va_end(arguments);
  failure->type = "RPCError";
  failure->code = code;
  failure->help[0] = 0;
  return false;
}

#endif
