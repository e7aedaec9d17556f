"""The records of an aipu.bin: of ELF, and inside its notes. The classes are the description of the layout.

Sizes and offsets are bytes. A default is what a writer puts where it has nothing to say.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import IntEnum

from compass_core.aipubin.fields import (
    Cursor,
    Custom,
    Numbers,
    Records,
    chars,
    count_of,
    f32,
    i32,
    i32s,
    record,
    u16,
    u32,
    u32s,
)

PAGE = 4096
REGION_SIZE = 3 << 30
"""Bytes of an address region (ASID); what a file's sections must fit in."""
CLEAN_MASK = 0xFFFFFFFF


class Kind(IntEnum):
    """The `type` of a sub-section. Other values mean scratch memory."""

    INPUT = 0
    OUTPUT = 1
    INTER_DUMP = 2
    INTERMEDIATE = 3
    CONSTANT = 4
    PROFILER = 10
    PRINTF = 12
    LAYER_COUNTER = 13
    ERROR_CODE = 14
    ZERO_COPY = 15
    OUTPUT_SHAPE = 16
    SEGMMU = 255


_ZERO_COPY = int(Kind.ZERO_COPY)
"""A plain number: a graph has hundreds of constants to compare with it."""
INDEXED_KINDS = (Kind.INPUT, Kind.OUTPUT, Kind.INTER_DUMP, Kind.OUTPUT_SHAPE)
"""Kinds whose sub-sections are numbered by `id`, dense from 0."""


@record(
    chars("ident", 16),
    u16("type"),
    u16("machine"),
    u32("version"),
    u32("entry"),
    u32("phoff"),
    u32("shoff"),
    u32("flags"),
    u16("ehsize"),
    u16("phentsize"),
    u16("phnum"),
    u16("shentsize"),
    u16("shnum"),
    u16("shstrndx"),
)
class ElfHeader:
    """The header of the ELF file (Elf32_Ehdr)."""

    ident: bytes
    type: int
    machine: int
    version: int
    shoff: int
    shnum: int
    shstrndx: int
    entry: int = 0
    phoff: int = 0
    flags: int = 0
    ehsize: int = 52
    phentsize: int = 0
    phnum: int = 0
    shentsize: int = 40


@record(
    u32("name"),
    u32("type"),
    u32("flags"),
    u32("addr"),
    u32("offset"),
    u32("size"),
    u32("link"),
    u32("info"),
    u32("align"),
    u32("entsize"),
)
class SectionHeader:
    """One entry of the section table (Elf32_Shdr); `name` is an offset into the section name table."""

    name: int = 0
    type: int = 0
    flags: int = 0
    addr: int = 0
    offset: int = 0
    size: int = 0
    link: int = 0
    info: int = 0
    align: int = 0
    entsize: int = 0


@record(u32("name_size"), u32("size"), u32("type"))
class NoteHeader:
    """The header before a note's name and payload, both padded to 4 bytes; `name_size` counts the NUL."""

    name_size: int
    size: int
    type: int = 0


DYNAMIC_SHAPE_FLAG = 1 << 6


@record(u32("file_version"), u32("build_version"), u32("device"), u32("flag"), i32s("reserved", 8))
class CompilerMessage:
    """Note `compilermsg`: format and builder version, the device word, flags."""

    device: int
    file_version: int = 0x01010000
    build_version: int = 0
    flag: int = 0
    reserved: tuple[int, ...] = (0,) * 8

    @property
    def dynamic_shape(self) -> bool:
        return bool(self.flag & DYNAMIC_SHAPE_FLAG)


@record(
    u32("offset"),
    u32("size"),
    u32("type"),
    u32("id"),
    u32("data_type"),
    f32("scale"),
    i32("zero_point"),
    u32s("reserved", 3),
    u32("addr_mask"),
    Numbers("references"),
)
class SubSection:
    """A tensor or a part of a section: where it starts in the section, and which words hold its address.

    `references` are byte offsets into the parameter block, continuing into the descriptors. `scale` is a float32.
    """

    offset: int = 0
    size: int = 0
    type: int = Kind.INTERMEDIATE
    id: int = 0
    data_type: int = 0
    scale: float = 1.0
    zero_point: int = 0
    reserved: tuple[int, ...] = (0, 0, 0)
    addr_mask: int = CLEAN_MASK
    references: tuple[int, ...] = ()


@record(u32("src_offset"), u32("size"), u32("align"), Records("subs", SubSection))
class StaticSection:
    """A constant: `size` bytes at `src_offset` of the weights."""

    src_offset: int
    size: int
    align: int = 64
    subs: tuple[SubSection, ...] = ()

    @property
    def zero_copy(self) -> bool:
        return bool(self.subs) and self.subs[-1].type == _ZERO_COPY


@record(u32("size"), u32("align"), u32("type"), Records("subs", SubSection))
class ReuseSection:
    """Memory that a job allocates: inputs, outputs, intermediates, private buffers."""

    size: int
    align: int = PAGE
    type: int = 0
    subs: tuple[SubSection, ...] = ()


@record(
    u32("stack_size"),
    u32("stack_align"),
    count_of("statics"),
    count_of("reuses"),
    Records("statics", StaticSection),
    Records("reuses", ReuseSection),
)
class Bss:
    """One BSS descriptor: the stack of a task, the constants and the memory of the graph."""

    reuses: tuple[ReuseSection, ...]
    statics: tuple[StaticSection, ...] = ()
    stack_size: int = 0x10000
    stack_align: int = PAGE


@record(u32("reserved0"), u32("reserved1"), Records("bss", Bss))
class FeatureMaps:
    """Note `fmlist`."""

    bss: tuple[Bss, ...]
    reserved0: int = 0
    reserved1: int = 0


def _read_dependencies(cursor: Cursor, field: str) -> tuple[int, ...] | None:
    value = cursor.number("i", f"{field} count")
    if value == -1:
        return None
    if not 0 <= value <= 4:
        raise cursor.fail(f"{field} count", f"{value} is neither -1 (all) nor 0 to 4", cursor.pos - 4)
    return struct.unpack(f"<{value}I", cursor.take(4 * value, field)) if value else ()


def _write_dependencies(value: tuple[int, ...] | None) -> bytes:
    return struct.pack("<i", -1) if value is None else struct.pack(f"<i{len(value)}I", len(value), *value)


@record(
    u32("id"),
    u32("type"),
    u32("text_offset"),
    u32("bss_index"),
    u32("params_offset"),
    u32("params_size"),
    u32("desc_offset"),
    u32("desc_size"),
    u32("printf_size"),
    u32("profiler_offset"),
    u32("private_data_size"),
    u32("warmup_len"),
    u32("reserved2"),
    u32("reserved3"),
    Custom("precursors", 4, _read_dependencies, _write_dependencies),
    Records("private_buffers", ReuseSection),
)
class Subgraph:
    """One kernel launch. `precursors` are the sub-graphs it waits for; None means all before it."""

    text_offset: int
    params_size: int
    params_offset: int = 0
    id: int = 0
    type: int = 0
    bss_index: int = 0
    desc_offset: int = 0
    desc_size: int = 0
    printf_size: int = 0
    profiler_offset: int = 0
    private_data_size: int = PAGE
    warmup_len: int = 0
    reserved2: int = 0
    reserved3: int = 0
    precursors: tuple[int, ...] | None = ()
    private_buffers: tuple[ReuseSection, ...] = ()


class Area(IntEnum):
    """Parts of the file that a remap entry can name."""

    PARAMS = 0
    DESC = 1
    TEXT = 2


@record(u32("area"), u32("offset"), u32("target_area"), u32("target_offset"))
class Remap:
    """One pointer between parts: the word at `offset` of `area` becomes the address of `target_offset` there."""

    area: int
    offset: int
    target_area: int
    target_offset: int


@record(u32("fm_index"), u32("buffer_type"), u32("buffer_index"), u32("reserved"))
class GmBuffer:
    """A buffer that the global memory takes over."""

    fm_index: int = 0
    buffer_type: int = 0
    buffer_index: int = 0
    reserved: int = 0


def _read_gm_buffers(cursor: Cursor, field: str) -> tuple[GmBuffer, ...]:
    return Records(field, GmBuffer).decode(cursor, 2)


def _write_gm_buffers(value: tuple[GmBuffer, ...]) -> bytes:
    return Records("buffers", GmBuffer).encode(value)


@record(
    u32("control"),
    u32s("region_control", 2),
    u32s("reserved", 3),
    Custom("buffers", 32, _read_gm_buffers, _write_gm_buffers),
)
class GmConfig:
    """Note `gmconfig`: placement in global memory; the low 4 bits of `control` are the number of buffers (0 to 2)."""

    control: int = 0
    region_control: tuple[int, ...] = (0, 0)
    reserved: tuple[int, ...] = (0, 0, 0)
    buffers: tuple[GmBuffer, ...] = (GmBuffer(), GmBuffer())


@record(u32s("control", 8), u32("ctl"), u32("remap"), u32s("reserved", 4))
class SegMmu:
    """One core's segment MMU: four pairs of control words, then the common ones."""

    control: tuple[int, ...] = (0,) * 8
    ctl: int = 0
    remap: int = 0
    reserved: tuple[int, ...] = (0,) * 4


def _read_rest(cursor: Cursor, field: str) -> bytes:
    return cursor.take(cursor.remaining, field)


@record(u32("input_shape_offset"), u32("num_params"), Custom("content", 0, _read_rest, bytes))
class GlobalParams:
    """Note `globalparam`: where, in a device copy of the note, the dims of the inputs are written."""

    input_shape_offset: int = 8
    num_params: int = 0
    content: bytes = b""


@record(Numbers("dims"))
class ShapeLimit:
    """The least (even position) or greatest (odd position) dims of input `position / 2`."""

    dims: tuple[int, ...]


def _read_name(cursor: Cursor, field: str) -> str:
    size = cursor.number("Q", f"{field} length")
    start = cursor.pos
    try:
        return cursor.take(size, field).decode()
    except UnicodeDecodeError as error:
        raise cursor.fail(field, "not UTF-8 text", start) from error


def _write_name(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


@record(Custom("entry", 8, _read_name, _write_name))
class ExtraWeight:
    """A further weight file, as `NAME+SHA256` (hex)."""

    entry: str

    @property
    def name(self) -> str:
        return self.entry.rpartition("+")[0]

    @property
    def sha256(self) -> str:
        return self.entry.rpartition("+")[2]


def _read_extra_weights(cursor: Cursor, field: str) -> tuple[ExtraWeight, ...]:
    return Records(field, ExtraWeight).decode(cursor, cursor.number("Q", f"{field} count"))


def _write_extra_weights(value: tuple[ExtraWeight, ...]) -> bytes:
    return struct.pack("<Q", len(value)) + Records("files", ExtraWeight).encode(value)


@record(Custom("files", 8, _read_extra_weights, _write_extra_weights))
class ExtraWeights:
    """Note `extra_weight_name`: file k supplies the constants of BSS k + 1."""

    files: tuple[ExtraWeight, ...]


@record(u32("offset"), u32("size"), chars("hash", 32))
class ConstantHash:
    """The hash of one constant, for packages that share weights."""

    offset: int
    size: int
    hash: bytes


@record(Records("items", ConstantHash))
class HashTable:
    """The hashes of one BSS."""

    items: tuple[ConstantHash, ...]


KIND_NAMES: Mapping[int, str] = {k: k.name.lower().replace("_", " ") for k in Kind}
