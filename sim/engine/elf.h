/* The parts of the ELF64 format that a relocatable x86-64 object uses. */
#ifndef ENGINE_ELF_H
#define ENGINE_ELF_H

#include <stdint.h>

struct elf_header {
  uint8_t ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, program_headers, section_headers;
  uint32_t flags;
  uint16_t header_size, program_entry, program_count, section_entry, section_count, section_names;
};
struct elf_section {
  uint32_t name, type;
  uint64_t flags, address, offset, size;
  uint32_t link, info;
  uint64_t align, entry_size;
};
struct elf_symbol {
  uint32_t name;
  uint8_t info, other;
  uint16_t section;
  uint64_t value, size;
};
struct elf_rela {
  uint64_t offset;
  uint32_t type, symbol;
  int64_t addend;
};

enum { ELF_RELOCATABLE = 1, ELF_X86_64 = 62 };
enum { SECTION_NONE = 0, SECTION_SYMBOLS = 2, SECTION_RELA = 4, SECTION_NOBITS = 8, SECTION_REL = 9 };
enum { FLAG_WRITE = 1, FLAG_ALLOC = 2, FLAG_EXEC = 4, FLAG_TLS = 0x400 };
#define SYMBOL_TYPE(info) ((info) & 0xfu)
enum { SYMBOL_OBJECT = 1 };
enum { INDEX_UNDEFINED = 0, INDEX_RESERVED = 0xff00, INDEX_ABSOLUTE = 0xfff1 };
enum {
  R_NONE = 0,
  R_64 = 1,
  R_PC32 = 2,
  R_PLT32 = 4,
  R_GOTPCREL = 9,
  R_32 = 10,
  R_32S = 11,
  R_PC64 = 24,
  R_GOTPCRELX = 41,
  R_REX_GOTPCRELX = 42
};

#endif
