"""The host code that an aipu.bin of this toolchain carries in `.text`: entry records around one ELF64 object.

The layout is in docs/internals/files.md ("aipu.bin"). A subgraph's `text_offset` is the offset of its entry record, so a
task control block's `spc` points at that record, and the record says how far back the start of `.text` is.

A record may tell which words of the parameter block are addresses, one character per word: the number of the ASID that
the address counts from, or `-` for a word that is no address. Who runs the code needs that where ASIDs have different
bases. Functions that are given other kinds of tensors by different launches have a record for each.
"""

from __future__ import annotations

import hashlib
import re
import struct
from typing import TYPE_CHECKING

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.reading.names import is_symbol

if TYPE_CHECKING:
    from collections.abc import Sequence

MAGIC = b"CPSHOST1"
ENTRY_MAGIC = b"CPSENTRY"
DESCRIPTORS = "d"
"""In an ASID text: the parameter word that is the address of descriptors."""
_ASIDS = re.compile(rb"[-0123d]*(\+[0-9a-f]{1,8}:[0-3](,[0-9a-f]{1,8}:[0-3])*)?")
HEADER = struct.Struct("<8sIIII40s")
ENTRY = struct.Struct("<8sII48s")
OBJECT_ALIGN = 64
MAX_ENTRIES = 4096
ENTRY_PREFIX = "__compass_entry_"
MAX_SYMBOL = 47
"""Characters of an entry symbol that fit into a record."""


def entry_symbol(kernel: str) -> str:
    """The symbol of a kernel's entry function; long names are cut and told apart by a hash, which stands for letters
    beyond ASCII too."""
    symbol = ENTRY_PREFIX + kernel
    if len(symbol) <= MAX_SYMBOL and symbol.isascii():
        return symbol
    symbol = "".join(c if c.isascii() else "_" for c in symbol)
    return f"{symbol[: MAX_SYMBOL - 9]}_{hashlib.sha256(kernel.encode()).hexdigest()[:8]}"


class HostCodeError(CompassError):
    """A `.text` content that is not, or not completely, host code of this toolchain."""


@dataclass(frozen=True)
class TextBlob:
    """The content of `.text`: `entries` are (symbol, offset of its record in `.text`), in order, `asids` goes with them."""

    elf: bytes
    entries: tuple[tuple[str, int], ...]
    asids: tuple[str, ...]
    """The ASID text of each record; empty if a record has none."""
    features: str
    triple: str

    def offset_of(self, symbol: str) -> int:
        """The `text_offset` of an entry symbol; HostCodeError when there is no such entry."""
        for name, offset in self.entries:
            if name == symbol:
                return offset
        have = ", ".join(name for name, _ in self.entries)
        raise HostCodeError(f"'.text' has no entry '{symbol}'", notes=(f"its entries are: {have}",))


def _padded(text: str, width: int, what: str) -> bytes:
    """`text` as a NUL-padded field of `width` bytes; HostCodeError when it does not fit with one NUL."""
    data = text.encode("ascii")
    if not data or len(data) >= width:
        raise HostCodeError(f"{what} '{text}' must have 1 to {width - 1} characters")
    return data.ljust(width, b"\0")


def _text(field: bytes, what: str, offset: int) -> str:
    """The NUL-padded field at `offset` as text; HostCodeError when it is empty, unterminated or not ASCII."""
    name, end, _ = field.partition(b"\0")
    if not name or not end or not name.isascii():
        raise HostCodeError(f"'.text' is damaged: the {what} at offset {offset:#x} is not a NUL-padded name")
    return name.decode("ascii")


def _symbol(text: str, offset: int) -> str:
    """`text` when a symbol may be called that; HostCodeError otherwise."""
    if is_symbol(text):
        return text
    raise HostCodeError(f"'.text' is damaged: the entry symbol {text!r} at offset {offset:#x} is no name of a function")


def make_text_blob(elf: bytes, symbols: Sequence[str], features: str, triple: str, asids: Sequence[str] = ()) -> bytes:
    """The `.text` content for an object file.

    `symbols` are the entry functions in it, `features` the `-march` value (or feature list) its code needs, `triple`
    the host it was compiled for. `asids`: what the record of each symbol tells about the parameter words; empty when
    none of them tells.
    """
    if not 1 <= len(symbols) <= MAX_ENTRIES:
        raise HostCodeError(f"'.text' needs 1 to {MAX_ENTRIES} entries, got {len(symbols)}")
    for symbol in symbols:
        if not is_symbol(symbol):
            raise HostCodeError(f"the entry symbol {symbol!r:.80} is no name of a function")
    feature_bytes = features.encode("ascii")
    told = asids or [""] * len(symbols)
    texts = bytearray()
    texts_start = HEADER.size + ENTRY.size * len(symbols) + len(feature_bytes)
    where = {"": 0}
    for text in told:
        if text not in where:
            where[text] = texts_start + len(texts)
            texts += text.encode("ascii") + b"\0"
    elf_offset = -(-(texts_start + len(texts)) // OBJECT_ALIGN) * OBJECT_ALIGN
    header = HEADER.pack(
        MAGIC, len(symbols), elf_offset, len(elf), len(feature_bytes), _padded(triple, 40, "host triple")
    )
    records = (
        ENTRY.pack(ENTRY_MAGIC, HEADER.size + i * ENTRY.size, where[text], _padded(symbol, 48, "entry symbol"))
        for i, (symbol, text) in enumerate(zip(symbols, told, strict=True))
    )
    head = header + b"".join(records) + feature_bytes + texts
    return head.ljust(elf_offset, b"\0") + elf


def parse_text_blob(data: bytes) -> TextBlob:
    """Read a `.text` content; HostCodeError, with offset and reason, when anything in it is out of order."""
    if len(data) < HEADER.size or not data.startswith(MAGIC):
        raise HostCodeError(
            "'.text' holds no host code: it does not start with 'CPSHOST1'",
            notes=("it was probably built for the device itself, which this simulator does not interpret",),
            help="build the kernel with compassc",
        )
    _, count, elf_offset, elf_size, feature_size, triple = HEADER.unpack_from(data)
    records_end = HEADER.size + ENTRY.size * count
    if not 1 <= count <= MAX_ENTRIES or records_end + feature_size > elf_offset:
        raise HostCodeError(f"'.text' is damaged: {count} entry records do not fit before the object ({elf_offset:#x})")
    if elf_offset % OBJECT_ALIGN or elf_offset + elf_size > len(data):
        raise HostCodeError(f"'.text' is damaged: object at {elf_offset:#x} of {elf_size} bytes in {len(data)} bytes")
    entries, asids = [], []
    for i in range(count):
        offset = HEADER.size + i * ENTRY.size
        magic, back, at, name = ENTRY.unpack_from(data, offset)
        if magic != ENTRY_MAGIC or back != offset:
            raise HostCodeError(f"'.text' is damaged: no entry record at offset {offset:#x}")
        entries.append((_symbol(_text(name, "entry symbol", offset + 16), offset + 16), offset))
        asids.append(_asids(data, at, records_end + feature_size, elf_offset) if at else "")
    features = data[records_end : records_end + feature_size]
    if not features.isascii():
        raise HostCodeError(f"'.text' is damaged: the feature string at offset {records_end:#x} is not ASCII")
    return TextBlob(
        bytes(data[elf_offset : elf_offset + elf_size]),
        tuple(entries),
        tuple(asids),
        features.decode("ascii"),
        _text(triple, "host triple", 24),
    )


def _asids(data: bytes, at: int, low: int, high: int) -> str:
    """The ASID text of the record at `at`; HostCodeError if it is not text within the head."""
    text, end, _ = bytes(data[at:high]).partition(b"\0")
    if not low <= at < high or not end or not _ASIDS.fullmatch(text):
        raise HostCodeError(f"'.text' is damaged: no description of parameter words at offset {at:#x}")
    return text.decode("ascii")
