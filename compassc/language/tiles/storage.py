"""Where tiles lie."""

from __future__ import annotations

from dataclasses import field

from compass_core.dataclass import dataclass
from compassc.ir.dtypes import DataType

from .values import Pointer

Shape = tuple[int, ...]


def extents(shape: Shape) -> tuple[int, int]:
    """Rows and columns; a tile of one dimension is a row."""
    return (1, shape[0]) if len(shape) == 1 else (shape[0], shape[1])


@dataclass(eq=False, slots=True)
class Storage:
    """Where a tile lies: `pitch` elements from row to row; a column (and a single element) without gaps. `base`: the
    allocation, which views share, and which has it from element `first` on."""

    pointer: Pointer
    dtype: DataType
    shape: Shape
    pitch: int
    base: object
    first: int = 0
    is_column: bool = field(init=False)

    def __post_init__(self) -> None:
        rows, cols = extents(self.shape)
        self.is_column = cols == 1 and rows > 1
