#include "object.h"

#include "debug.h"
#include "elf.h"
#include "exports.h"
#include "tec.h"

#define MAX_SECTIONS 4096u
#define MAX_SYMBOLS 65536u
#define MAX_SHARED_ARRAYS 1024u
#define MAX_NAME 4096u
#define STUB_SIZE 16u /* jmp *0(%rip), then the 64-bit target */

/* Memory classes in the order in which they are laid out. */
enum region { REGION_CODE, REGION_CONST, REGION_DATA, REGIONS };

/* The object being loaded, and the last one loaded. `place[i]` is the address of section i, 0 when it is not loaded. */
static struct loader {
  const uint8_t *file;
  size_t size;
  const struct elf_header *header;
  const struct elf_section *sections;
  const struct elf_symbol *symbols;
  uint32_t symbol_count;
  const struct elf_section *strings;
  uint64_t place[MAX_SECTIONS];
  uint64_t low[REGIONS], high[REGIONS];
  uint64_t stubs, stub_count, slots; /* stubs: jumps to the engine; slots: addresses, one per symbol */
  char *message;
} loader;

static bool refuse(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(loader.message, MESSAGE_SIZE, format, arguments);
  va_end(arguments);
  return false;
}

static bool in_file(uint64_t offset, uint64_t size) { return offset <= loader.size && size <= loader.size - offset; }
static uint64_t align_up(uint64_t value, uint64_t align) { return (value + align - 1) & ~(align - 1); }
static bool is_loaded(const struct elf_section *s) { return s->flags & FLAG_ALLOC; }
/* Whether the section has bytes in the file: they lie inside it, as `check_sections` made sure. */
static bool has_bytes(const struct elf_section *s) { return s->type != SECTION_NONE && s->type != SECTION_NOBITS; }

static enum region region_of(const struct elf_section *s) {
  return s->flags & FLAG_EXEC ? REGION_CODE : s->flags & FLAG_WRITE ? REGION_DATA : REGION_CONST;
}

/* The NUL-terminated string at `offset` of string section `s`; "?" when it leaves the section or is no name. */
static const char *text_at(const struct elf_section *s, uint32_t offset) {
  if (!has_bytes(s) || offset >= s->size) return "?";
  const char *text = (const char *)loader.file + s->offset + offset;
  uint64_t room = s->size - offset;
  return memchr(text, 0, room < MAX_NAME ? room : MAX_NAME) ? text : "?";
}

static const char *symbol_name(const struct elf_symbol *symbol) { return text_at(loader.strings, symbol->name); }
static const char *section_name(uint32_t index) {
  return text_at(&loader.sections[loader.header->section_names], loader.sections[index].name);
}

static bool read_header(void) {
  const struct elf_header *h = (const struct elf_header *)loader.file;
  if (loader.size < sizeof *h || memcmp(h->ident, "\177ELF\2\1", 6) != 0)
    return refuse("the object in '.text' is not a 64-bit little-endian ELF file");
  if (h->type != ELF_RELOCATABLE || h->machine != ELF_X86_64)
    return refuse("the object in '.text' has ELF type %u for machine %u; wanted a relocatable x86-64 file", h->type,
                  h->machine);
  if (h->section_entry != sizeof(struct elf_section) || h->section_count == 0 || h->section_count > MAX_SECTIONS ||
      h->section_names >= h->section_count || h->section_headers % 8 != 0 ||
      !in_file(h->section_headers, (uint64_t)h->section_count * sizeof(struct elf_section)))
    return refuse("the object's section table (%u entries at %#llx) is damaged", h->section_count,
                  (unsigned long long)h->section_headers);
  loader.header = h;
  loader.sections = (const struct elf_section *)(loader.file + h->section_headers);
  return true;
}

static bool check_sections(void) {
  loader.symbols = NULL;
  for (uint32_t i = 0; i < loader.header->section_count; i++) {
    const struct elf_section *s = &loader.sections[i];
    if (has_bytes(s) && !in_file(s->offset, s->size))
      return refuse("section %u of the object (offset %#llx, %#llx bytes) lies outside the file", i,
                    (unsigned long long)s->offset, (unsigned long long)s->size);
    if (is_loaded(s) &&
        (s->type == SECTION_NONE || s->size > CODE_HIGH - ENGINE_LOW || s->align > PAGE || (s->align & (s->align - 1)) || (s->flags & FLAG_TLS)))
      return refuse("section %u of the object has a size, alignment or kind that the simulator does not load", i);
    if (s->type != SECTION_SYMBOLS) continue;
    if (loader.symbols || s->entry_size != sizeof(struct elf_symbol) || s->offset % 8 ||
        s->link >= loader.header->section_count || s->size / sizeof(struct elf_symbol) > MAX_SYMBOLS)
      return refuse("the object's symbol table (section %u) is damaged", i);
    loader.symbols = (const struct elf_symbol *)(loader.file + s->offset);
    loader.symbol_count = (uint32_t)(s->size / sizeof(struct elf_symbol));
    loader.strings = &loader.sections[s->link];
  }
  return loader.symbols ? true : refuse("the object has no symbol table");
}

/* Gives every loaded section its address: code with the stubs behind it, constants with the slots behind them, data. */
static bool lay_out(struct object *object) {
  uint64_t at = ENGINE_LOW;
  loader.stub_count = 0;
  for (uint32_t i = 1; i < loader.symbol_count; i++) loader.stub_count += loader.symbols[i].section == INDEX_UNDEFINED;
  for (enum region region = 0; region < REGIONS; region++) {
    loader.low[region] = at = align_up(at, PAGE);
    for (uint32_t i = 0; i < loader.header->section_count; i++) {
      const struct elf_section *s = &loader.sections[i];
      if (!is_loaded(s) || region_of(s) != region) continue;
      loader.place[i] = at = align_up(at, s->align ? s->align : 1);
      at += s->size;
      if (at > CODE_HIGH) return refuse("the object needs more than %u bytes", CODE_HIGH - ENGINE_LOW);
    }
    if (region == REGION_CODE) at = (loader.stubs = align_up(at, STUB_SIZE)) + loader.stub_count * STUB_SIZE;
    if (region == REGION_CONST) at = (loader.slots = align_up(at, 8)) + (uint64_t)loader.symbol_count * 8;
    loader.high[region] = at;
  }
  object->data_low = loader.low[REGION_DATA];
  object->data_high = at;
  object->area_high = align_up(at, PAGE) + PAGE;
  return object->area_high <= CODE_HIGH ? true : refuse("the object is too large");
}

/* The shared arrays of a kernel are static variables called KERNEL.ARRAY: whether a symbol is one, and of which kernel.
 */
static size_t shared_array_of(const struct elf_symbol *symbol) {
  if (symbol->section == INDEX_UNDEFINED || symbol->section >= loader.header->section_count) return 0;
  const struct elf_section *s = &loader.sections[symbol->section];
  if (!is_loaded(s) || region_of(s) != REGION_DATA || SYMBOL_TYPE(symbol->info) != SYMBOL_OBJECT) return 0;
  const char *name = symbol_name(symbol), *dot = memchr(name, '.', strlen(name));
  return dot ? (size_t)(dot - name) : 0;
}

void object_each_shared(void (*visit)(const char *name, uint64_t address, uint64_t size)) {
  for (uint32_t i = 1; i < loader.symbol_count; i++) {
    const struct elf_symbol *symbol = &loader.symbols[i];
    size_t kernel = shared_array_of(symbol);
    if (kernel) visit(symbol_name(symbol) + kernel + 1, loader.place[symbol->section] + symbol->value, symbol->size);
  }
}

/* Each kernel's shared arrays must fit the shared memory of a core. */
static bool check_shared_memory(void) {
  uint32_t arrays = 0;
  for (uint32_t i = 1; i < loader.symbol_count; i++) {
    const struct elf_symbol *symbol = &loader.symbols[i];
    if (!shared_array_of(symbol)) continue;
    uint64_t room = loader.sections[symbol->section].size;
    if (symbol->value > room || symbol->size > room - symbol->value)
      return refuse("the shared array '%.100s' lies outside its section", symbol_name(symbol));
    if (++arrays > MAX_SHARED_ARRAYS) return refuse("the object has more than %u shared arrays", MAX_SHARED_ARRAYS);
  }
  for (uint32_t i = 1; device.shared_bytes && i < loader.symbol_count; i++) {
    const char *name = symbol_name(&loader.symbols[i]);
    size_t length = shared_array_of(&loader.symbols[i]);
    uint64_t total = 0;
    for (uint32_t k = i; length && k < loader.symbol_count; k++)
      if (shared_array_of(&loader.symbols[k]) == length && memcmp(symbol_name(&loader.symbols[k]), name, length) == 0)
        total += loader.symbols[k].size;
    if (total > device.shared_bytes)
      return refuse("the shared arrays of kernel '%.*s' need %llu bytes, but a core has %u bytes of shared memory",
                    (int)(length < 100 ? length : 100), name, (unsigned long long)total, device.shared_bytes);
  }
  return true;
}

static bool map_and_copy(struct object *object) {
  void *area = mmap((void *)(uint64_t)ENGINE_LOW, object->area_high - ENGINE_LOW, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (area == MAP_FAILED) return refuse("cannot map the kernel's code: %s", strerror(errno));
  for (uint32_t i = 0; i < loader.header->section_count; i++) {
    const struct elf_section *s = &loader.sections[i];
    if (loader.place[i] && has_bytes(s)) memcpy((void *)loader.place[i], loader.file + s->offset, s->size);
    if (loader.place[i] && strcmp(section_name(i), ".text") == 0) {
      object->text_low = loader.place[i];
      object->text_high = loader.place[i] + s->size;
    }
  }
  return true;
}

/* Writes the value of every symbol into its slot; undefined ones get a stub near the code that jumps to the engine. */
static bool resolve_symbols(void) {
  uint64_t *slots = (uint64_t *)loader.slots;
  uint64_t stub = loader.stubs;
  for (uint32_t i = 1; i < loader.symbol_count; i++) {
    const struct elf_symbol *symbol = &loader.symbols[i];
    if (symbol->section == INDEX_ABSOLUTE) {
      slots[i] = symbol->value;
    } else if (symbol->section == INDEX_UNDEFINED) {
      uint64_t target = find_export(symbol_name(symbol));
      if (!target)
        return refuse("the kernel uses the function '%.100s', which the simulator does not have", symbol_name(symbol));
      memcpy((void *)stub, "\xff\x25\0\0\0\0", 6);
      memcpy((void *)(stub + 6), &target, 8);
      slots[i] = stub;
      stub += STUB_SIZE;
    } else {
      if (symbol->section >= INDEX_RESERVED || symbol->section >= loader.header->section_count)
        return refuse("symbol '%.100s' of the object is in no section (%#x)", symbol_name(symbol), symbol->section);
      slots[i] = loader.place[symbol->section] ? loader.place[symbol->section] + symbol->value : 0;
    }
  }
  return true;
}

/* Applies one relocation at `at`, which has `room` bytes before its section ends. */
static bool relocate(const struct elf_rela *r, uint64_t at, uint64_t room) {
  if (r->symbol >= loader.symbol_count) return refuse("a relocation of the object names symbol %u", r->symbol);
  uint64_t slot = loader.slots + (uint64_t)r->symbol * 8;
  uint64_t symbol = r->symbol ? *(uint64_t *)slot : 0;
  uint64_t value = symbol + (uint64_t)r->addend;
  uint64_t width = r->type == R_64 || r->type == R_PC64 ? 8 : 4;
  if (r->type == R_NONE) return true;
  if (room < width) return refuse("a relocation of the object lies outside its section");
  switch (r->type) {
    case R_64:
    case R_32:
    case R_32S:
      break;
    case R_PC32:
    case R_PLT32:
    case R_PC64:
      value -= at;
      break;
    case R_GOTPCREL:
    case R_GOTPCRELX:
    case R_REX_GOTPCRELX:
      value = slot + (uint64_t)r->addend - at;
      break;
    default:
      return refuse("the object uses relocation type %u for '%.100s', which the simulator does not know", r->type,
                    symbol_name(&loader.symbols[r->symbol]));
  }
  bool fits = r->type == R_32 ? value == (uint32_t)value : (int64_t)value == (int32_t)value;
  if (width == 4 && !fits)
    return refuse("the address of '%.100s' does not fit relocation type %u", symbol_name(&loader.symbols[r->symbol]),
                  r->type);
  memcpy((void *)at, &value, width);
  return true;
}

static bool relocate_sections(void) {
  for (uint32_t i = 0; i < loader.header->section_count; i++) {
    const struct elf_section *s = &loader.sections[i];
    if (s->type != SECTION_RELA && s->type != SECTION_REL) continue;
    if (s->info >= loader.header->section_count || !loader.place[s->info]) continue;
    if (s->type == SECTION_REL || s->offset % 8) return refuse("relocation section %u of the object is damaged", i);
    const struct elf_rela *relocations = (const struct elf_rela *)(loader.file + s->offset);
    uint64_t target_size = loader.sections[s->info].size;
    for (uint64_t k = 0; k < s->size / sizeof *relocations; k++) {
      if (relocations[k].offset > target_size) return refuse("a relocation of the object lies outside its section");
      if (!relocate(&relocations[k], loader.place[s->info] + relocations[k].offset,
                    target_size - relocations[k].offset))
        return false;
    }
  }
  return true;
}

static void protect(enum region region, int access) {
  uint64_t low = loader.low[region], high = align_up(loader.high[region], PAGE);
  if (high > low) mprotect((void *)low, high - low, access);
}

bool object_load(struct object *object, const uint8_t *file, size_t size, char *message) {
  object_unload(object);
  memset(&loader, 0, sizeof loader);
  loader.file = file;
  loader.size = size;
  loader.message = message;
  if (!read_header() || !check_sections() || !check_shared_memory() || !lay_out(object) || !map_and_copy(object) ||
      !resolve_symbols() || !relocate_sections()) {
    object_unload(object);
    return false;
  }
  protect(REGION_CODE, PROT_READ | PROT_EXEC);
  protect(REGION_CONST, PROT_READ);
  debug_loaded(file, size, loader.place);
  return true;
}

void object_unload(struct object *object) {
  debug_unloaded();
  if (object->area_high) munmap((void *)(uint64_t)ENGINE_LOW, object->area_high - ENGINE_LOW);
  memset(object, 0, sizeof *object);
  loader.symbol_count = 0;
}

/* The address of symbol `i` when it is a function called `name`, else 0. */
static uint64_t function_at(uint32_t i, const char *name) {
  const struct elf_symbol *symbol = &loader.symbols[i];
  if (symbol->section == INDEX_UNDEFINED || symbol->section >= loader.header->section_count) return 0;
  const struct elf_section *s = &loader.sections[symbol->section];
  bool found =
      is_loaded(s) && (s->flags & FLAG_EXEC) && symbol->value < s->size && strcmp(symbol_name(symbol), name) == 0;
  return found ? loader.place[symbol->section] + symbol->value : 0;
}

uint64_t object_function(const char *name) {
  uint64_t address = 0;
  for (uint32_t i = 1; i < loader.symbol_count && !address; i++) address = function_at(i, name);
  return address;
}

void object_each_function(const char *name, void (*visit)(uint64_t address)) {
  for (uint32_t i = 1; i < loader.symbol_count; i++)
    if (function_at(i, name)) visit(function_at(i, name));
}
