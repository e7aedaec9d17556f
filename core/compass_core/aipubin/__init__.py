"""aipu.bin, the NPU graph binary: one description of its layout, and the reader and writer derived from it.

`read(bytes)` gives an `AipuBin` whose every offset, count and size has been checked; `write(AipuBin)` gives the bytes;
reading what was written gives an equal structure. `describe(AipuBin)` gives tables for a reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compass_core.aipubin.fields import AipuBinError
from compass_core.aipubin.kernelinfo import KernelInfo, Param
from compass_core.aipubin.model import AipuBin, Note
from compass_core.aipubin.reader import read
from compass_core.aipubin.writer import pieces_of, write

if TYPE_CHECKING:
    from compass_core.aipubin.tables import Table

__all__ = ["AipuBin", "AipuBinError", "KernelInfo", "Note", "Param", "describe", "pieces_of", "read", "write"]


def describe(content: AipuBin) -> list[Table]:
    """Tables (title, column names, rows of text) that show all of `content`; those without rows are left out."""
    from compass_core.aipubin.tables import tables

    return tables(content)
