"""A tensor of a graph: its type, shape, scale and zero point."""

from __future__ import annotations

import math
from typing import Any

from compass_core.dataclass import dataclass
from compassc.graph.dtypes import INTEGER_TYPES, IntegerType


class LayerError(Exception):
    """A layer is inconsistent, or in a form that is not implemented; the message names the attribute and its value."""


@dataclass(frozen=True)
class Tensor:
    """A tensor without its elements. Its name is its identity: no two of a graph share one.

    `shape`: sizes in elements; -1 where one is not known. `scale` and `zero`: a quantised value q stands for
    (q + zero) / scale; tuples hold a value for each index of the dimension `axis` (arrays may be given). `limits`: the
    smallest and largest value the layer that makes the tensor may give (a part of the type's range); None for the
    type's own.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float | tuple[float, ...] = 1.0
    zero: int | tuple[int, ...] = 0
    limits: tuple[float, float] | None = None
    axis: int | None = None

    def __post_init__(self) -> None:
        if type(self.shape) is not tuple:
            object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        if type(self.scale) is not float:
            object.__setattr__(self, "scale", _numbers(self.scale))
        if type(self.zero) is not int:
            object.__setattr__(self, "zero", _numbers(self.zero))
        if self.limits is not None and type(self.limits) is not tuple:
            object.__setattr__(self, "limits", _numbers(self.limits))

    @property
    def is_integer(self) -> bool:
        return self.dtype in INTEGER_TYPES

    @property
    def integer(self) -> IntegerType:
        """Bits and sign. LayerError for other types."""
        if self.dtype not in INTEGER_TYPES:
            raise LayerError(f"'{self.name}' is {self.dtype}, expected an integer type")
        return INTEGER_TYPES[self.dtype]

    @property
    def low(self) -> int:
        """The smallest value: of `limits`, else of the type."""
        return int(self.limits[0]) if self.limits else self.integer.low

    @property
    def high(self) -> int:
        return int(self.limits[1]) if self.limits else self.integer.high

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def scalar_zero(self) -> int:
        """The zero point where it is one number. LayerError for a tensor with one per channel."""
        if isinstance(self.zero, tuple):
            raise LayerError(f"'{self.name}' has a zero point per channel, which this layer does not take")
        return int(self.zero)

    @property
    def scalar_scale(self) -> float:
        """The scale where it is one number. LayerError for a tensor with one per channel."""
        if isinstance(self.scale, tuple):
            raise LayerError(f"'{self.name}' has a scale per channel, which this layer does not take")
        return float(self.scale)


def _numbers(value: object) -> Any:
    """A number, or several as a tuple."""
    listed = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(listed, (list, tuple)):
        return listed
    return listed[0] if len(listed) == 1 else tuple(listed)
