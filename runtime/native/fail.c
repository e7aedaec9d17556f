#include "fail.h"
#include "system.h"

static _Thread_local char text[512];

aipu_status_t fail(aipu_status_t status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return status;
}

const char *fail_text(void) { return text; }
