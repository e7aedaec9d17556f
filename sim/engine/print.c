#include "print.h"

#include "float16.h"
#include "schedule.h"

#define MAX_PRINTED (1u << 20) /* bytes a TEC may print in one job */
#define MAX_STRING 4096u
static const char CUT_MARK[] = "\n[output of this TEC cut]\n";

static void put(struct print_buffer *out, const char *text, size_t size) {
  if (out->cut) return;
  if (out->size + size > MAX_PRINTED) {
    out->cut = true;
    text = CUT_MARK;
    size = sizeof CUT_MARK - 1;
  }
  if (out->size + size > out->room) {
    size_t room = (out->size + size) * 2 + 256;
    char *grown = regrow(out->text, out->size, room);
    if (!grown) return;
    out->text = grown;
    out->room = room;
  }
  memcpy(out->text + out->size, text, size);
  out->size += size;
}

static void put_text(struct print_buffer *out, const char *format, ...) {
  char text[400]; /* the longest number: a float with 39 digits before the point */
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (size > 0) put(out, text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
}

static bool is_float(const struct print_value *v) { return v->kind == 'h' || v->kind == 'b' || v->kind == 'f'; }

static uint64_t unsigned_at(const struct print_value *v, uint32_t offset, uint32_t size) {
  uint64_t bits = 0;
  memcpy(&bits, v->bytes + offset, size);
  return bits;
}

/* Element `i` of a value, sign extended when it is signed. */
static int64_t integer(const struct print_value *v, uint32_t i) {
  uint32_t size = v->size <= 8 ? v->size : 8, bits = size * 8;
  uint64_t raw = unsigned_at(v, i * size, size);
  return v->kind == 'i' && bits < 64 ? (int64_t)(raw << (64 - bits)) >> (64 - bits) : (int64_t)raw;
}

static double real(const struct print_value *v, uint32_t i) {
  uint64_t bits = unsigned_at(v, i * v->size, v->size <= 4 ? v->size : 4);
  if (v->kind == 'h') return half_value((uint16_t)bits);
  if (v->kind == 'b') return bfloat_value((uint16_t)bits);
  if (v->kind == 'f') return (double)__builtin_bit_cast(float, (uint32_t)bits);
  return (double)integer(v, i);
}

/* Six decimals, cut and not rounded; nothing for infinities and NaN. */
static void put_real(struct print_buffer *out, double x) {
  if (x - x != 0) return;
  char text[400];
  int size = snprintf(text, sizeof text, "%.160f", x); /* all digits of any float */
  if (size > 154) put(out, text, (size_t)size - 154);
}

/* The 32 bits that %x, %o and %u show; of a float, those of its single precision form. */
static uint32_t word(const struct print_value *v) {
  return is_float(v) ? __builtin_bit_cast(uint32_t, (float)real(v, 0)) : (uint32_t)integer(v, 0);
}

static void put_string(struct print_buffer *out, const struct print_value *v) {
  const char *text = (const char *)unsigned_at(v, 0, 8);
  put(out, text, strnlen(text, MAX_STRING));
}

static void put_scalar(struct print_buffer *out, char specifier, const struct print_value *v) {
  switch (specifier) {
    case 'd':
    case 'i':
      put_text(out, "%d", is_float(v) ? (int)real(v, 0) : (int)integer(v, 0));
      break;
    case 'u':
      put_text(out, "%u", word(v));
      break;
    case 'o':
      put_text(out, "0%o", word(v));
      break;
    case 'x':
      put_text(out, "0x%x", word(v));
      break;
    case 'X':
      put_text(out, "0x%X", word(v));
      break;
    case 'f':
      put_real(out, real(v, 0));
      break;
    case 'c':
      put(out, (char[]){(char)integer(v, 0)}, 1);
      break;
    case 's':
      if (v->kind == 'p') put_string(out, v);
      break;
    case 'p':
      put_text(out, "0x%08llx", (unsigned long long)integer(v, 0));
      break;
  }
}

/* The vector forms: text after `%v`, bytes of a lane, how a lane is shown. */
static const struct vector_form {
  const char *text;
  uint8_t size, kind;
} vector_forms[] = {{"32hhx", 1, 'x'}, {"16hx", 2, 'x'}, {"8hlx", 4, 'x'}, {"16hf", 2, 'f'}, {"8hlf", 4, 'f'}};

static void put_vector(struct print_buffer *out, const struct vector_form *form, const struct print_value *v) {
  for (uint32_t i = 0; i * form->size < sizeof v->bytes; i++) {
    if (i) put(out, ",", 1);
    if (form->kind == 'f')
      put_real(out, real(v, i));
    else
      put_text(out, "0x%llx", (unsigned long long)unsigned_at(v, i * form->size, form->size));
  }
}

static const struct vector_form *vector_form(const char *text) {
  for (size_t i = 0; i < sizeof vector_forms / sizeof *vector_forms; i++)
    if (memcmp(text, vector_forms[i].text, strnlen(text, strlen(vector_forms[i].text))) == 0 &&
        strnlen(text, 6) >= strlen(vector_forms[i].text))
      return &vector_forms[i];
  return NULL;
}

/* A specifier the dialect does not have, or one without an argument, is printed as it stands. */
void __compass_printf(uint32_t count, const struct print_value *values) {
  struct print_buffer *out = &current_tec()->printed;
  schedule_point();
  const char *format = (const char *)unsigned_at(&values[0], 0, 8);
  uint32_t next = 1;
  for (const char *at = format; *at;) {
    const struct vector_form *form = at[0] == '%' && at[1] == 'v' ? vector_form(at + 2) : NULL;
    if (at[0] == '%' && at[1] == '%') {
      put(out, "%", 1);
      at += 2;
    } else if (form && next < count && values[next].lanes > 1) {
      put_vector(out, form, &values[next++]);
      at += 2 + strlen(form->text);
    } else if (at[0] == '%' && at[1] && next < count && memchr("diuoxXfcsp", at[1], 10)) {
      put_scalar(out, at[1], &values[next++]);
      at += 2;
    } else {
      put(out, at++, 1);
    }
  }
}

uint32_t print_size(void) {
  uint32_t size = 0;
  for (uint32_t i = 0; i < MAX_TECS; i++) size += (uint32_t)tecs[i].printed.size;
  return size;
}

void print_clear(void) {
  for (uint32_t i = 0; i < MAX_TECS; i++) {
    tecs[i].printed.size = 0;
    tecs[i].printed.cut = false;
  }
}
