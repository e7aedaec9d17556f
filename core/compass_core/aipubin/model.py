"""An aipu.bin as a structure, and the table that says which note holds which part of it."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

from compass_core.aipubin import layout as lay
from compass_core.aipubin.device import core_count, detailed_target
from compass_core.aipubin.fields import AipuBinError, Cursor, Records, decode, encode
from compass_core.aipubin.kernelinfo import KernelInfo
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.files.pieces import Pieces
from compass_core.namedtuple import NamedTuple


class Note(NamedTuple):
    """A note this toolchain has no name for, kept as it is."""

    name: str
    payload: bytes
    type: int = 0


@dataclass(frozen=True)
class AipuBin:
    """The content of an aipu.bin.

    `text` holds the code of all sub-graphs, `const_data` the compiler's constants (section `.rodata`), `params` the
    parameter blocks (note `rodata`), `desc` the hardware descriptors, `weights` the graph's constants. `kernel` is what
    this toolchain knows of the kernel's parameters, None in foreign files.
    """

    compiler: lay.CompilerMessage
    features: lay.FeatureMaps
    subgraphs: tuple[lay.Subgraph, ...]
    text: bytes
    params: bytes = b""
    desc: bytes = b""
    weights: bytes | Pieces = b""
    remap: tuple[lay.Remap, ...] = ()
    comment: str = ""
    const_data: bytes = b""
    data: bytes = b""
    gm: lay.GmConfig | None = None
    segmmu: tuple[lay.SegMmu, ...] = ()
    global_params: lay.GlobalParams | None = None
    shape_limits: tuple[lay.ShapeLimit, ...] = ()
    extra_weights: lay.ExtraWeights | None = None
    hash_tables: tuple[lay.HashTable, ...] = ()
    graph_json: bytes = b""
    kernel: KernelInfo | None = None
    other_notes: tuple[Note, ...] = ()

    @property
    def target(self) -> str:
        """The target with its multi-core suffix, if the file names one."""
        return detailed_target(self.compiler.device, self.comment)

    @property
    def cores(self) -> int:
        return core_count(self.target)

    def sub_sections(self, kind: lay.Kind) -> tuple[lay.SubSection, ...]:
        """The sub-sections of `kind` in all reuse sections, ordered by id where the kind is numbered."""
        found = [s for bss in self.features.bss for section in bss.reuses for s in section.subs if s.type == kind]
        return tuple(sorted(found, key=lambda s: s.id) if kind in lay.INDEXED_KINDS else found)


class NoteSpec(NamedTuple):
    """How one attribute of `AipuBin` is stored in the note `name`. `exact`: not even padding may follow the content. `apart`:
    it is the content, which may stay in the file."""

    name: str
    attribute: str
    read: Callable[[Cursor], Any]
    write: Callable[[Any], bytes | Pieces]
    required: bool = False
    exact: bool = False
    apart: bool = False


def _bytes(cursor: Cursor) -> bytes:
    return cursor.take(cursor.remaining, "content")


def _raw(name: str, attribute: str, required: bool = False) -> NoteSpec:
    return NoteSpec(name, attribute, _bytes, bytes, required)


def _one(name: str, attribute: str, cls: type, required: bool = False, exact: bool = False) -> NoteSpec:
    return NoteSpec(name, attribute, lambda cursor: decode(cls, cursor), encode, required, exact)


def _many(name: str, attribute: str, cls: type, required: bool = False) -> NoteSpec:
    items = Records(attribute, cls)
    return NoteSpec(
        name,
        attribute,
        lambda cursor: items.decode(cursor, cursor.number("I", f"{attribute} count")),
        lambda value: struct.pack("<I", len(value)) + items.encode(value),
        required,
    )


def _read_kernel(cursor: Cursor) -> KernelInfo:
    try:
        return KernelInfo.from_bytes(_bytes(cursor), cursor.place)
    except AipuBinError:
        raise
    except CompassError as error:
        raise AipuBinError(error.message, code="invalid-gbin", help=error.help) from error


def _write_kernel(kernel: KernelInfo) -> bytes:
    return json.dumps(kernel.to_json(), separators=(",", ":")).encode()


NOTES = (
    _one("compilermsg", "compiler", lay.CompilerMessage, required=True, exact=True),
    _raw("rodata", "params"),
    _raw("desc", "desc"),
    NoteSpec("weight", "weights", _bytes, lambda value: value, apart=True),
    _one("fmlist", "features", lay.FeatureMaps, required=True),
    _many("remap", "remap", lay.Remap),
    _many("subgraphs", "subgraphs", lay.Subgraph, required=True),
    _one("gmconfig", "gm", lay.GmConfig, exact=True),
    _many("segmmu", "segmmu", lay.SegMmu),
    _one("globalparam", "global_params", lay.GlobalParams),
    _many("inputshapeconstraint", "shape_limits", lay.ShapeLimit),
    _one("extra_weight_name", "extra_weights", lay.ExtraWeights),
    _many("constanthashtable", "hash_tables", lay.HashTable),
    _raw("graphjson", "graph_json"),
    NoteSpec("compassc", "kernel", _read_kernel, _write_kernel),
)
NOTE_NAMES = frozenset(n.name for n in NOTES)

SECTIONS = {".text": "text", ".rodata": "const_data", ".data": "data", ".comment": "comment"}
"""ELF sections other than the notes, and the attribute each becomes."""
NOTE_SECTION = ".note.aipu"
