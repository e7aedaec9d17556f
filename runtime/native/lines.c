/* The line tables of DWARF 5, as far as clang writes them. Every read is checked against the end of its section. */
#include "lines.h"

#include "elf.h"

struct bytes {
  const uint8_t *at, *end;
  bool short_of; /* something was to be read that is not there */
};

/* The parts of an object that have to do with lines. */
struct object {
  const uint8_t *data;
  size_t size;
  const struct elf_section *sections;
  uint32_t count, text;
  struct bytes strings, names; /* .debug_line_str, .debug_str */
  uint8_t *lines;              /* a copy of .debug_line, relocated */
  size_t line_bytes;
};

struct entry {
  struct bytes name;
  uint64_t folder;
};

/* A unit of the line table: its header's numbers, and where its parts begin. */
struct unit {
  uint8_t instruction_bytes, line_range, opcode_base;
  int8_t line_base;
  uint8_t lengths[256];
  struct bytes folders, files, program;
};

struct row {
  uint64_t address, file, line;
};

struct search {
  uint64_t pc;
  bool found;
  struct row best;
  struct unit unit; /* that of the best row */
};

/* The line program's opcodes with operands that matter. */
enum { COPY = 1, ADVANCE_PC = 2, ADVANCE_LINE = 3, SET_FILE = 4, CONST_ADD_PC = 8, FIXED_ADVANCE_PC = 9 };
enum { END_SEQUENCE = 1, SET_ADDRESS = 2 };
enum { NAME = 1, FOLDER = 2 }; /* content of table columns */
enum {
  FORM_BLOCK = 0x09,
  FORM_DATA1 = 0x0b,
  FORM_DATA2 = 0x05,
  FORM_STRING = 0x08,
  FORM_STRP = 0x0e,
  FORM_UDATA = 0x0f,
  FORM_DATA16 = 0x1e,
  FORM_LINE_STRP = 0x1f
};

static struct bytes take(struct bytes *from, uint64_t size) {
  if (size > (uint64_t)(from->end - from->at)) {
    from->short_of = true;
    from->at = from->end;
    return (struct bytes){from->end, from->end, true};
  }
  struct bytes taken = {from->at, from->at + size, false};
  from->at += size;
  return taken;
}

static uint64_t number(struct bytes *from, uint32_t size) {
  uint64_t value = 0;
  struct bytes taken = take(from, size);
  if (!taken.short_of) memcpy(&value, taken.at, size);
  return value;
}

static uint64_t unsigned_leb(struct bytes *from) {
  uint64_t value = 0;
  for (uint32_t shift = 0;; shift += 7) {
    uint64_t byte = number(from, 1);
    if (shift < 64) value |= (byte & 0x7f) << shift;
    if (!(byte & 0x80) || from->short_of) return value;
  }
}

static int64_t signed_leb(struct bytes *from) {
  uint64_t value = 0;
  for (uint32_t shift = 0;; shift += 7) {
    uint64_t byte = number(from, 1);
    if (shift < 64) value |= (byte & 0x7f) << shift;
    if ((byte & 0x80) && !from->short_of) continue;
    if (shift < 57 && (byte & 0x40)) value |= ~0ull << (shift + 7);
    return (int64_t)value;
  }
}

/* The text up to a NUL, which is read too; what is longer than any path counts as several. */
static struct bytes string(struct bytes *from) {
  size_t room = (size_t)(from->end - from->at), length = strnlen((const char *)from->at, room < 4096 ? room : 4096);
  struct bytes taken = take(from, length);
  take(from, 1);
  return taken;
}

static struct bytes string_at(struct bytes from, uint64_t offset) {
  take(&from, offset);
  return string(&from);
}

static bool in_object(const struct object *object, const struct elf_section *section) {
  return section->type != SECTION_NOBITS && section->offset <= object->size &&
         section->size <= object->size - section->offset;
}

static struct bytes content(const struct object *object, const struct elf_section *section) {
  if (!in_object(object, section)) return (struct bytes){object->data, object->data, false};
  return (struct bytes){object->data + section->offset, object->data + section->offset + section->size, false};
}

static bool is_named(const struct object *object, const struct elf_section *section, const char *name) {
  const struct elf_header *header = (const struct elf_header *)object->data;
  struct bytes found = string_at(content(object, &object->sections[header->section_names]), section->name);
  return (size_t)(found.end - found.at) == strlen(name) && memcmp(found.at, name, strlen(name)) == 0;
}

/* Applies the relocations of .debug_line: of addresses, and of offsets in the sections of strings. */
static void relocate(struct object *object, const struct elf_section *section) {
  if (section->link >= object->count || section->offset % 8 || section->type != SECTION_RELA) return;
  struct bytes symbols = content(object, &object->sections[section->link]), relas = content(object, section);
  for (struct bytes next; next = take(&relas, sizeof(struct elf_rela)), !next.short_of;) {
    struct elf_rela rela;
    struct elf_symbol symbol;
    memcpy(&rela, next.at, sizeof rela);
    struct bytes from = symbols;
    take(&from, (uint64_t)rela.symbol * sizeof symbol);
    from = take(&from, sizeof symbol);
    uint32_t width = rela.type == R_64 ? 8 : rela.type == R_32 ? 4 : 0;
    if (from.short_of || !width || rela.offset > object->line_bytes || width > object->line_bytes - rela.offset)
      continue;
    memcpy(&symbol, from.at, sizeof symbol);
    uint64_t value = symbol.value + (uint64_t)rela.addend;
    /* code of other sections is nowhere that a TEC's place can name */
    if (width == 8 && symbol.section != object->text) value = UINT64_MAX >> 1;
    memcpy(object->lines + rela.offset, &value, width);
  }
}

static bool read_sections(struct object *object) {
  const struct elf_header *header = (const struct elf_header *)object->data;
  if (object->size < sizeof *header || memcmp(header->ident, "\177ELF\2\1", 6) != 0) return false;
  uint64_t table = header->section_headers, bytes = header->section_count * sizeof *object->sections;
  if (table % 8 || table > object->size || bytes > object->size - table ||
      header->section_names >= header->section_count)
    return false;
  object->sections = (const struct elf_section *)(object->data + table);
  object->count = header->section_count;
  uint32_t lines = 0;
  for (uint32_t i = 1; i < object->count; i++) {
    const struct elf_section *section = &object->sections[i];
    if (is_named(object, section, ".text")) object->text = i;
    if (is_named(object, section, ".debug_line")) lines = i;
    if (is_named(object, section, ".debug_line_str")) object->strings = content(object, section);
    if (is_named(object, section, ".debug_str")) object->names = content(object, section);
  }
  struct bytes found = content(object, &object->sections[lines]);
  object->line_bytes = (size_t)(found.end - found.at);
  if (!lines || !object->text || !(object->lines = malloc(object->line_bytes + 1))) return false;
  memcpy(object->lines, found.at, object->line_bytes);
  for (uint32_t i = 1; i < object->count; i++)
    if (object->sections[i].info == lines) relocate(object, &object->sections[i]);
  return true;
}

/* One column: a text, which is looked up when it is wanted, or a number. */
static void read_column(const struct object *object, uint64_t form, bool wanted, struct bytes *from, struct bytes *text,
                        uint64_t *value) {
  uint64_t offset;
  switch (form) {
    case FORM_STRING:
      *text = string(from);
      break;
    case FORM_LINE_STRP:
    case FORM_STRP:
      offset = number(from, 4);
      if (wanted) *text = string_at(form == FORM_STRP ? object->names : object->strings, offset);
      break;
    case FORM_UDATA:
      *value = unsigned_leb(from);
      break;
    case FORM_DATA1:
    case FORM_DATA2:
      *value = number(from, form == FORM_DATA1 ? 1 : 2);
      break;
    case FORM_DATA16:
      take(from, 16);
      break;
    case FORM_BLOCK:
      take(from, unsigned_leb(from));
      break;
    default:
      take(from, UINT64_MAX);
  }
}

static struct entry read_entry(const struct object *object, bool wanted, struct bytes columns, struct bytes *from) {
  struct entry entry = {.name = {from->at, from->at, false}};
  while (columns.at < columns.end) {
    uint64_t what = unsigned_leb(&columns), form = unsigned_leb(&columns), value = 0;
    struct bytes text = {from->at, from->at, false};
    read_column(object, form, wanted, from, &text, &value);
    if (what == NAME) entry.name = text;
    if (what == FOLDER) entry.folder = value;
  }
  return entry;
}

/* Reads a table of folders or files, of which it gives entry `wanted`. */
static struct entry read_table(const struct object *object, struct bytes *from, uint64_t wanted) {
  struct entry found = {.name = {from->at, from->at, false}};
  uint64_t pairs = number(from, 1);
  struct bytes columns = {from->at, from->at, false};
  while (pairs-- && !from->short_of) unsigned_leb(from), unsigned_leb(from);
  columns.end = from->at;
  uint64_t count = unsigned_leb(from);
  for (uint64_t i = 0; i < count && columns.at < columns.end && from->at < from->end; i++) {
    struct entry entry = read_entry(object, i == wanted, columns, from);
    if (i == wanted) found = entry;
  }
  return found;
}

/* Reads the header of a unit of version 5. */
static bool read_unit(const struct object *object, struct bytes *from, struct unit *unit) {
  if (number(from, 2) != 5) return false;
  number(from, 2); /* sizes of addresses and segments */
  uint64_t header = number(from, 4);
  unit->program = *from;
  take(&unit->program, header);
  unit->instruction_bytes = (uint8_t)number(from, 1);
  number(from, 2); /* operations of an instruction, what rows are statements */
  unit->line_base = (int8_t)number(from, 1);
  unit->line_range = (uint8_t)number(from, 1);
  unit->opcode_base = (uint8_t)number(from, 1);
  for (uint32_t i = 1; i < unit->opcode_base; i++) unit->lengths[i] = (uint8_t)number(from, 1);
  unit->folders = *from;
  read_table(object, from, UINT64_MAX);
  unit->files = *from;
  return unit->line_range && unit->opcode_base && !from->short_of && !unit->program.short_of;
}

/* The row before `next` ends where that begins: whether it is the nearest one before the address so far. */
static void end_row(struct search *search, const struct unit *unit, const struct row *row, const struct row *next) {
  if (next->address <= row->address || !row->line || row->address > search->pc) return;
  if (search->found && row->address < search->best.address) return;
  search->found = true;
  search->best = *row;
  search->unit = *unit;
}

/* An opcode with operands of its own length. Whether a sequence of rows has ended. */
static bool extended(struct bytes *program, struct row *row) {
  struct bytes operands = take(program, unsigned_leb(program));
  uint64_t code = number(&operands, 1);
  if (code == SET_ADDRESS) row->address = number(&operands, 8);
  return code == END_SEQUENCE;
}

static void standard(const struct unit *unit, uint8_t code, struct bytes *program, struct row *row) {
  switch (code) {
    case ADVANCE_PC:
      row->address += unsigned_leb(program) * unit->instruction_bytes;
      break;
    case ADVANCE_LINE:
      row->line += (uint64_t)signed_leb(program);
      break;
    case SET_FILE:
      row->file = unsigned_leb(program);
      break;
    case CONST_ADD_PC:
      row->address += (uint64_t)(255 - unit->opcode_base) / unit->line_range * unit->instruction_bytes;
      break;
    case FIXED_ADVANCE_PC:
      row->address += number(program, 2);
      break;
    default:
      for (uint8_t i = 0; i < unit->lengths[code]; i++) unsigned_leb(program);
  }
}

static void run_program(const struct unit *unit, struct search *search) {
  const struct row start = {0, 1, 1};
  struct row row = start, last = start;
  struct bytes program = unit->program;
  bool has_last = false;
  while (program.at < program.end) {
    uint8_t code = (uint8_t)number(&program, 1);
    bool ends = code == 0 && extended(&program, &row), special = code >= unit->opcode_base;
    if (special) {
      uint8_t step = (uint8_t)(code - unit->opcode_base);
      row.address += (uint64_t)(step / unit->line_range) * unit->instruction_bytes;
      row.line += (uint64_t)(int64_t)(unit->line_base + step % unit->line_range);
    } else if (code != 0 && code != COPY) {
      standard(unit, code, &program, &row);
    }
    if (!special && !ends && code != COPY) continue;
    if (has_last) end_row(search, unit, &last, &row);
    has_last = !ends;
    last = row;
    if (ends) row = start;
  }
}

static void write_place(const struct object *object, const struct search *search, char *text, size_t room) {
  struct bytes files = search->unit.files, folders = search->unit.folders;
  struct entry file = read_table(object, &files, search->best.file);
  struct entry folder = read_table(object, &folders, file.folder);
  int length = (int)(file.name.end - file.name.at), above = (int)(folder.name.end - folder.name.at);
  bool whole = (length && file.name.at[0] == '/') || !above || (above == 1 && folder.name.at[0] == '.');
  snprintf(text, room, "%.*s%s%.*s:%llu", whole ? 0 : above, folder.name.at, whole ? "" : "/", length, file.name.at,
           (unsigned long long)search->best.line);
}

static bool line_at(const uint8_t *data, size_t size, uint64_t pc, char *text, size_t room) {
  struct object object = {.data = data, .size = size};
  struct search search = {.pc = pc};
  if (!read_sections(&object)) return free(object.lines), false;
  struct bytes all = {object.lines, object.lines + object.line_bytes, false};
  while (all.at < all.end) {
    struct bytes rest = take(&all, number(&all, 4));
    struct unit unit = {0};
    if (!rest.short_of && read_unit(&object, &rest, &unit)) {
      unit.program.end = rest.end;
      run_program(&unit, &search);
    }
  }
  if (search.found) write_place(&object, &search, text, room);
  free(object.lines);
  return search.found;
}

enum { OBJECT_OFFSET = 12, OBJECT_SIZE = 16, HEADER_BYTES = 64 };

bool line_in_text(const uint8_t *start, size_t size, uint64_t pc, char *text, size_t room) {
  uint32_t offset, bytes;
  if (size < HEADER_BYTES) return false;
  memcpy(&offset, start + OBJECT_OFFSET, sizeof offset);
  memcpy(&bytes, start + OBJECT_SIZE, sizeof bytes);
  if (offset % 8 || offset > size || bytes > size - offset) return false;
  return line_at(start + offset, bytes, pc, text, room);
}
