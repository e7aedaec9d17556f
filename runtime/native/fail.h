/* The text of the last error of a thread. */
#ifndef RUNTIME_FAIL_H
#define RUNTIME_FAIL_H

#include "compass_runtime.h"

/* Keeps the text and returns the status, for `return fail(...)`. */
aipu_status_t fail(aipu_status_t status, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *fail_text(void);

/* The constant text of a status. */
const char *status_text(aipu_status_t status);

#endif
