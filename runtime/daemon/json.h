/* JSON: values that were read, and texts that are written. */
#ifndef DAEMON_JSON_H
#define DAEMON_JSON_H

#include "os.h"

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_INTEGER, JSON_FLOAT, JSON_TEXT, JSON_LIST, JSON_DICT };

struct json {
  enum json_kind kind;
  uint32_t size, key_size; /* bytes of a text, items of a list or dict; bytes of the key */
  const char *text, *key;  /* of a dict's item its key; followed by a NUL, and may contain some */
  int64_t integer;
  double number;             /* of both kinds of numbers */
  struct json *first, *next; /* items */
};

/* The value of a text, which is changed, and which a byte follows that may be written; NULL where it is no JSON, or
 * there is no memory. free() the result: it is one piece, and its texts lie in the given one. */
struct json *json_parse(char *text, size_t size);
/* The item of a dict; NULL where there is none, or it is no dict. */
const struct json *json_find(const struct json *dict, const char *key);
bool json_is(const struct json *value, const char *text);

/* A text that grows. `failed`: there was no memory for it. */
struct text {
  char *data;
  size_t size, room;
  bool failed;
};

void text_add(struct text *text, const char *data, size_t size);
void text_put(struct text *text, const char *data);
__attribute__((format(printf, 2, 3))) void text_print(struct text *text, const char *format, ...);
/* A string of JSON; bytes that are no UTF-8 become question marks. */
void text_string(struct text *text, const char *data, size_t size);
/* A number; those that JSON has not as the objects of the protocol. */
void text_number(struct text *text, double number);
/* A value as it was read. */
void text_value(struct text *text, const struct json *value);
/* Length of the UTF-8 character at `at`; 0 where there is none. */
size_t utf8_size(const char *at, const char *end);

#endif
