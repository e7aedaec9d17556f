"""Where tiles lie."""

from __future__ import annotations

from dataclasses import dataclass

from compassc.ir.dtypes import DataType

from .values import Pointer

Shape = tuple[int, ...]


def extents(shape: Shape) -> tuple[int, int]:
    """Rows and columns; a tile of one dimension is a row."""
    return (1, shape[0]) if len(shape) == 1 else (shape[0], shape[1])


@dataclass(frozen=True, eq=False)
class Storage:
    """Where a tile lies: `pitch` elements from row to row; a column (and a single element) without gaps. `base`: the
    allocation, which views share, and which has it from element `first` on."""

    pointer: Pointer
    dtype: DataType
    shape: Shape
    pitch: int
    base: object
    first: int = 0

    @property
    def is_column(self) -> bool:
        rows, cols = extents(self.shape)
        return cols == 1 and rows > 1
