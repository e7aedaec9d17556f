"""The arrays that a kernel declares, as its author knows them: a table that the compiler writes, kept in the object.

Each line of the section `.compass.arrays` (never loaded) has the name in C, the name in the kernel, the scope and the
data type of an element. Checked runs tell of arrays by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from compass_core.aipubin.dtypes import BY_NAME
from compass_core.elf.elf64 import section
from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple

SECTION = ".compass.arrays"
SCOPES = ("private", "lsram", "shared", "constant")
_NAME = re.compile(r"\w{1,1024}")
_DTYPE = re.compile(r"([a-z]+[0-9]*)(?:x([1-9]\d{0,3}))?")


class Array(NamedTuple):
    """An array of a kernel: its names in C and in the kernel, where it lies, and its element, which may be a vector."""

    symbol: str
    name: str
    scope: str
    dtype: str

    @property
    def element_bytes(self) -> int:
        match = _DTYPE.fullmatch(self.dtype)
        assert match is not None, self.dtype
        kind, lanes = match.groups()
        return BY_NAME[kind].size * int(lanes or 1)


def array_of(item: Mapping[str, str]) -> Array:
    """An array of a table in JSON. ValueError or KeyError where it is none."""
    found = Array(item["symbol"], item["name"], item["scope"], item["dtype"])
    if not all(isinstance(text, str) for text in found):
        raise ValueError(f"the array {found!r:.80}")
    kind = _DTYPE.fullmatch(found.dtype)
    named = _NAME.fullmatch(found.symbol) and _NAME.fullmatch(found.name)
    if not named or found.scope not in SCOPES or kind is None or kind[1] not in BY_NAME:
        raise ValueError(f"the array {found!r:.80}")
    return found


def section_source(arrays: Iterable[Array]) -> str:
    """A line of C that puts the table into the object; no line for an empty one."""
    lines = [" ".join(array) + "\n" for array in arrays]
    if not lines:
        return ""
    data = ",".join(str(byte) for byte in "".join(lines).encode())
    return f'__asm__(".pushsection {SECTION},\\"\\",@progbits\\n .byte {data}\\n .popsection\\n");\n'


def read(elf: bytes) -> dict[str, Array]:
    """The arrays of an object by their names in C; those of linked objects stand one behind the other.

    CompassError when the table is damaged.
    """
    try:
        lines = (section(elf, SECTION) or b"").decode().splitlines()
        found = [array_of(dict(zip(Array._fields, line.split(" "), strict=True))) for line in lines]
    except ValueError as error:
        raise CompassError(f"the table of the kernel's arrays is damaged: {error}", code="no-source") from None
    return {array.symbol: array for array in found}
