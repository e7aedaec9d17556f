#include "json.h"

#define MOST_DEPTH 256

struct parser {
  char *at, *end;
  struct json *next; /* the first node that is free */
  uint32_t depth;
};

static void skip(struct parser *p) {
  while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')) p->at++;
}

static bool take(struct parser *p, const char *word) {
  size_t size = strlen(word);
  if ((size_t)(p->end - p->at) < size || memcmp(p->at, word, size) != 0) return false;
  p->at += size;
  return true;
}

size_t utf8_size(const char *at, const char *end) {
  unsigned char first = (unsigned char)*at;
  size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size > (size_t)(end - at)) return 0;
  for (size_t i = 1; i < size; i++)
    if (((unsigned char)at[i] & 0xc0) != 0x80) return 0;
  unsigned char second = size > 1 ? (unsigned char)at[1] : 0;
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
      (first == 0xf4 && second > 0x8f))
    return 0;
  return size;
}

static int hex(const char *at) {
  int value = 0;
  for (int i = 0; i < 4; i++) {
    int digit = at[i] >= '0' && at[i] <= '9'                 ? at[i] - '0'
                : (at[i] | 32) >= 'a' && (at[i] | 32) <= 'f' ? (at[i] | 32) - 'a' + 10
                                                             : -1;
    if (digit < 0) return -1;
    value = value << 4 | digit;
  }
  return value;
}

/* The character of `\uXXXX`, the position being behind the `u`; -1 where there is none, also for half of a pair. */
static long escaped(struct parser *p) {
  long code = p->end - p->at >= 4 ? hex(p->at) : -1;
  if (code < 0 || (code >= 0xdc00 && code < 0xe000)) return -1;
  p->at += 4;
  if (code < 0xd800 || code >= 0xdc00) return code;
  long low = p->end - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u' ? hex(p->at + 2) : -1;
  if (low < 0xdc00 || low >= 0xe000) return -1;
  p->at += 6;
  return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

static char *encode(char *out, long code) {
  if (code < 0x80) return *out = (char)code, out + 1;
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static const unsigned char heads[] = {0, 0xc0, 0xe0, 0xf0};
  *out++ = (char)(heads[more] | code >> 6 * more);
  while (more--) *out++ = (char)(0x80 | (code >> 6 * more & 0x3f));
  return out;
}

/* A string whose quote was taken; it is written over itself, and ends with a NUL in the place of its quote or before.
 */
static bool string(struct parser *p, const char **text, uint32_t *size) {
  static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  char *start = p->at, *out = p->at;
  while (p->at < p->end && *p->at != '"') {
    size_t bytes = utf8_size(p->at, p->end);
    if (!bytes || (unsigned char)*p->at < ' ') return false;
    if (*p->at != '\\') {
      memmove(out, p->at, bytes);
      out += bytes;
      p->at += bytes;
      continue;
    }
    if (p->end - p->at < 2) return false;
    char kind = p->at[1];
    p->at += 2;
    const char *known = kind ? strchr(names, kind) : NULL;
    long code = known ? meant[known - names] : kind == 'u' ? escaped(p) : -1;
    if (code < 0) return false;
    out = encode(out, code);
  }
  if (p->at == p->end) return false;
  p->at++;
  *out = 0;
  *text = start;
  *size = (uint32_t)(out - start);
  return true;
}

static bool is_digit(const struct parser *p) { return p->at < p->end && *p->at >= '0' && *p->at <= '9'; }

static bool digits(struct parser *p) {
  if (!is_digit(p)) return false;
  while (is_digit(p)) p->at++;
  return true;
}

static bool number(struct parser *p, struct json *value) {
  char *start = p->at;
  bool negative = take(p, "-"), whole = true;
  if (!take(p, "0") && !digits(p)) return false;
  uint64_t sum = 0;
  bool fits = true;
  for (char *at = start + negative; at < p->at; at++) {
    fits = fits && sum <= 922337203685477579ull;
    sum = sum * 10 + (uint64_t)(*at - '0');
  }
  if (p->at < p->end && *p->at == '.') {
    p->at++;
    whole = false;
    if (!digits(p)) return false;
  }
  if (p->at < p->end && (*p->at | 32) == 'e') {
    p->at++;
    whole = false;
    if (!take(p, "+")) take(p, "-");
    if (!digits(p)) return false;
  }
  char after = *p->at; /* there is a byte behind the text */
  *p->at = 0;
  value->number = strtod(start, NULL);
  *p->at = after;
  bool is_integer = whole && fits && sum <= 0x7fffffffffffffffull;
  value->kind = is_integer ? JSON_INTEGER : JSON_FLOAT;
  if (is_integer) value->integer = negative ? -(int64_t)sum : (int64_t)sum;
  return true;
}

static bool parse(struct parser *p, struct json *value);

/* The items of a list or dict, whose bracket was taken. */
static bool items(struct parser *p, struct json *value, char end) {
  struct json **last = &value->first;
  if (++p->depth > MOST_DEPTH) return false;
  skip(p);
  if (p->at < p->end && *p->at == end) return p->at++, p->depth--, true;
  for (;;) {
    struct json *item = p->next++;
    skip(p);
    if (value->kind == JSON_DICT) {
      if (!take(p, "\"") || !string(p, &item->key, &item->key_size)) return false;
      skip(p);
      if (!take(p, ":")) return false;
    }
    if (!parse(p, item)) return false;
    *last = item;
    last = &item->next;
    value->size++;
    skip(p);
    if (p->at == p->end) return false;
    char next = *p->at++;
    if (next == end) break;
    if (next != ',') return false;
  }
  p->depth--;
  return true;
}

static bool parse(struct parser *p, struct json *value) {
  static const struct {
    const char *word;
    enum json_kind kind;
  } words[] = {{"null", JSON_NULL}, {"false", JSON_FALSE}, {"true", JSON_TRUE},
               {"\"", JSON_TEXT},   {"[", JSON_LIST},      {"{", JSON_DICT}};
  skip(p);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!take(p, words[i].word)) continue;
    value->kind = words[i].kind;
    if (value->kind == JSON_TEXT) return string(p, &value->text, &value->size);
    return value->kind < JSON_TEXT || items(p, value, value->kind == JSON_LIST ? ']' : '}');
  }
  return number(p, value);
}

struct json *json_parse(char *text, size_t size) {
  /* each value has a character, and another one beside it, but for brackets that are not closed */
  struct json *nodes = calloc(size / 2 + MOST_DEPTH + 4, sizeof *nodes);
  if (!nodes) return NULL;
  char after = text[size];
  text[size] = 0;
  struct parser p = {.at = text, .end = text + size, .next = nodes + 1};
  bool good = parse(&p, nodes);
  skip(&p);
  good = good && p.at == p.end;
  text[size] = after;
  if (good) return nodes;
  free(nodes);
  return NULL;
}

const struct json *json_find(const struct json *dict, const char *key) {
  const struct json *found = NULL;
  size_t size = strlen(key);
  if (!dict || dict->kind != JSON_DICT) return NULL;
  for (const struct json *item = dict->first; item; item = item->next)
    if (item->key_size == size && !memcmp(item->key, key, size)) found = item;
  return found;
}

bool json_is(const struct json *value, const char *text) {
  size_t size = strlen(text);
  return value && value->kind == JSON_TEXT && value->size == size && !memcmp(value->text, text, size);
}

void text_add(struct text *text, const char *data, size_t size) {
  if (text->failed) return;
  if (text->size + size > text->room) {
    size_t room = (text->size + size) * 2 + 256;
    char *grown = realloc(text->data, room);
    text->failed = !grown;
    if (!grown) return;
    text->data = grown;
    text->room = room;
  }
  if (size) memcpy(text->data + text->size, data, size);
  text->size += size;
}

void text_put(struct text *text, const char *data) { text_add(text, data, strlen(data)); }

void text_print(struct text *text, const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text_add(text, line, size < (int)sizeof line ? (size_t)size : sizeof line - 1);
}

void text_string(struct text *text, const char *data, size_t size) {
  text_put(text, "\"");
  for (const char *at = data, *end = data + size; at < end;) {
    size_t bytes = utf8_size(at, end);
    if (!bytes)
      text_put(text, "?");
    else if ((unsigned char)*at < ' ' || *at == '"' || *at == '\\' || *at == 127)
      text_print(text, "\\u%04x", (unsigned char)*at);
    else
      text_add(text, at, bytes);
    at += bytes ? bytes : 1;
  }
  text_put(text, "\"");
}

void text_number(struct text *text, double number) {
  if (number - number == 0)
    text_print(text, "%.17g%s", number,
               number < 1e15 && number > -1e15 && number == (double)(int64_t)number ? ".0" : "");
  else
    text_print(text, "{\"$\":\"float\",\"is\":\"%s\"}", number > 0 ? "inf" : number < 0 ? "-inf" : "nan");
}

void text_value(struct text *text, const struct json *value) {
  static const char *const words[] = {"null", "false", "true"};
  if (value->kind <= JSON_TRUE)
    text_put(text, words[value->kind]);
  else if (value->kind == JSON_INTEGER)
    text_print(text, "%lld", (long long)value->integer);
  else if (value->kind == JSON_FLOAT)
    text_number(text, value->number);
  else if (value->kind == JSON_TEXT)
    text_string(text, value->text, value->size);
  else {
    text_put(text, value->kind == JSON_LIST ? "[" : "{");
    for (const struct json *item = value->first; item; item = item->next) {
      if (value->kind == JSON_DICT) text_string(text, item->key, item->key_size), text_put(text, ":");
      text_value(text, item);
      if (item->next) text_put(text, ",");
    }
    text_put(text, value->kind == JSON_LIST ? "]" : "}");
  }
}
