"""Structure to aipu.bin bytes, from the same layout the reader uses."""

from __future__ import annotations

from compass_core.aipubin.check import check
from compass_core.aipubin.fields import AipuBinError, encode, layout_of
from compass_core.aipubin.layout import ElfHeader, NoteHeader, SectionHeader
from compass_core.aipubin.model import NOTE_NAMES, NOTE_SECTION, NOTES, SECTIONS, AipuBin
from compass_core.aipubin.reader import ELF_MAGIC, MACHINE, TYPE_EXEC, VERSION
from compass_core.files.pieces import Piece, Pieces

_PROGBITS, _STRTAB, _NOTE = 1, 3, 7
_IDENT = (ELF_MAGIC + bytes([1, 1, 1])).ljust(16, b"\0")
_ALIGN = {".text": 64}
_TYPES = {".shstrtab": _STRTAB, NOTE_SECTION: _NOTE}


Parts = list[Piece | Pieces]
"""Bytes one behind the other."""


def write(content: AipuBin) -> bytes:
    """The bytes of an aipu.bin; AipuBinError when the structure breaks a rule of the format."""
    return bytes(pieces_of(content))


def pieces_of(content: AipuBin) -> Pieces:
    """The bytes in pieces, for writing to a file without copying the constants."""
    check(content)
    sections: dict[str, Parts] = {}
    for name, attribute in SECTIONS.items():
        value = getattr(content, attribute)
        if value:
            sections[name] = [_comment(value) if name == ".comment" else bytes(value)]
    sections[NOTE_SECTION] = _notes(content)
    return Pieces(_elf(sections))


def _comment(text: str) -> bytes:
    """The comment with NUL for newline; empty lines would not survive the reader, so they are refused."""
    lines = text.split("\n")
    if "\0" in text or not all(lines):
        raise AipuBinError("NUL characters and empty lines are not possible", place="section '.comment'")
    return "\0".join([*lines, ""]).encode()


def _notes(content: AipuBin) -> Parts:
    out: Parts = []
    for spec in NOTES:
        value = getattr(content, spec.attribute)
        if spec.required or value not in (None, (), b""):
            out += _note(spec.name, 0, spec.write(value))
    for note in content.other_notes:
        if note.name in NOTE_NAMES or not note.payload:
            raise AipuBinError("empty, or a name the format itself uses", place=f"note '{note.name}'")
        out += _note(note.name, note.type, note.payload)
    return out


def _note(name: str, kind: int, payload: Piece | Pieces) -> Parts:
    label, size = name.encode() + b"\0", len(payload)
    header = encode(NoteHeader(name_size=len(label), size=size, type=kind))
    return [header, _padded(label, 4), payload, bytes(-size % 4)]


def _padded(data: bytes, align: int) -> bytes:
    return data + bytes(-len(data) % align)


def _elf(sections: dict[str, Parts]) -> Parts:
    """An ELF file of the sections, in their order, with the section table at the end."""
    names = bytearray(b"\0")
    name_offsets = {}
    for name in (*sections, ".shstrtab"):
        name_offsets[name] = len(names)
        names += name.encode() + b"\0"

    start = at = layout_of(ElfHeader).min_size
    out: Parts = []
    table = [SectionHeader()]
    sections = {**sections, ".shstrtab": [bytes(names)]}
    for name, parts in sections.items():
        align = _ALIGN.get(name, 4)
        size, gap = sum(map(len, parts)), -at % align
        table.append(
            SectionHeader(
                name=name_offsets[name], type=_TYPES.get(name, _PROGBITS), offset=at + gap, size=size, align=align
            )
        )
        out += [bytes(gap), *parts]
        at += gap + size
    out.append(bytes(-at % 4))
    header = ElfHeader(
        ident=_IDENT,
        type=TYPE_EXEC,
        machine=MACHINE,
        version=VERSION,
        shoff=at + -at % 4,
        shnum=len(table),
        shstrndx=len(table) - 1,
    )
    return [encode(header).ljust(start, b"\0"), *out, *(encode(entry) for entry in table)]
