"""What the steps of element-wise layers are written with: numbers and tables of a kernel, variables, statements.

A step makes values of values (`compassc.build`). Whether they end in the text of a kernel (`source.KernelSource`) or in
one that is made as IR is the kernel's matter.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from compass_core.arrays import Array
from compassc import build
from compassc.build import Expression, Pointer, Value
from compassc.dsl import script as S
from compassc.graph import LayerError
from compassc.ir.dtypes import VECTOR_BITS, bool_of
from compassc.language.functions import Macro
from compassc.layers.machine import Share
from compassc.layers.vectors import WIDE, narrow

LANES = VECTOR_BITS // 8
"""Elements that one pass of an element-wise loop takes: bytes of a register."""
TABLES = Share(2)
"""LSRAM for the tables of a kernel."""


def everywhere(number: float | Expression, kind: str = "int32") -> Expression:
    """A number in all lanes."""
    return S.vbcast(S.cast(number, kind), lanes=LANES)


class Steps(build.Recorder):
    """A kernel in the making, as far as steps of layers need it."""

    stored_forms: dict[tuple[str, str], Value]
    """The lanes of variables as a data type stores them, where they are known: (variable, type) -> lanes."""
    shifted_from: dict[str, tuple[Value, Value]]
    """Variables that are others over a power of two, rounded: (the other, the shift)."""
    rounded_from: dict[str, Value]
    """Variables that are rounded products of floats: the words that `vectors.rounded_word` makes."""
    float_forms: dict[str, Value]
    """Whole numbers as float32, where they are known."""
    table_bytes = 0
    """Of the LSRAM that its tables take."""
    channel_shape: tuple[int, ...]
    """How the numbers per channel of the present step lie along the output, in kernels of any shape; set by the step."""

    @abstractmethod
    def let(self, expression: Expression, kind: str = ..., low: int | None = None, high: int | None = None) -> Value:
        """A new variable with the value of an expression; `low`, `high`: what is known of it beside its own range."""

    @abstractmethod
    def once(self, value: Expression) -> Value:
        """A new variable that is the same in all passes."""

    @abstractmethod
    def paste(self, macro: Macro, *arguments: Expression | Pointer | int) -> None:
        """The statements of a macro."""

    @abstractmethod
    def assign(self, variable: Value, value: Expression) -> None:
        """Gives a variable another value."""

    @abstractmethod
    def number(self, value: float | np.generic) -> Value:
        """A scalar parameter: int32, or float32 for a float. LayerError for an integer that is no int32."""

    @abstractmethod
    def pointer(self, array: Array) -> Pointer:
        """A pointer parameter for constant data."""

    @abstractmethod
    def table(self, array: Array) -> Pointer:
        """Constant data copied into LSRAM."""

    @abstractmethod
    def channels(self, numbers: Array) -> Value:
        """Numbers per channel: a vector of those of the pass, or the one of its index."""

    @abstractmethod
    def stored_channels(self, numbers: Array) -> Value:
        """As `channels`, a vector of the numbers as they are stored."""

    @abstractmethod
    def broadcast(self, numbers: Array) -> Value:
        """Numbers that broadcast to the output: a vector of those of the pass. LayerError in kernels of other shapes than
        their output's."""

    @property
    @abstractmethod
    def lanes_are_channels(self) -> bool:
        """Whether the lanes of a pass are those of the last axis alone."""

    @property
    @abstractmethod
    def one_for_all(self) -> bool:
        """Whether one number of a channel counts for all lanes of a pass."""

    @property
    @abstractmethod
    def any_lanes(self) -> bool:
        """Whether the kernel says which number is a lane's."""

    def take_for_table(self, array: Array) -> None:
        """LayerError where the LSRAM has no room for another table."""
        self.table_bytes += array.nbytes
        if self.table_bytes > TABLES.size:
            raise LayerError(f"its tables take {self.table_bytes} bytes of the LSRAM, which has {TABLES.size} for them")

    @property
    def mask(self) -> Value:
        """Which lanes of the pass are elements."""
        return build.variable("mask", bool_of(LANES))

    @staticmethod
    def argument(value: float | np.generic) -> int | float:
        """A number as the argument of a scalar parameter. LayerError for an integer that is no int32."""
        number = value.item() if isinstance(value, np.generic) else value
        if not isinstance(number, float) and not -(2**31) <= number < 2**31:
            raise LayerError(f"the number {number} does not fit 32 bits, which kernels compute with")
        return number

    def shifted(self, value: Value, offset: int) -> Value:
        """An integer plus a number."""
        if not offset:
            return value
        return self.let(value + self.number(offset), low=value.low + offset, high=value.high + offset)

    def stored(self, value: Value, dtype: str) -> Value:
        """The lanes of a value as a data type stores them."""
        if dtype not in WIDE:
            raise LayerError(f"kernels do not compute with {dtype}")
        known = self.stored_forms.get((value.name, dtype))
        found: Value = narrow(value, dtype) if known is None else known
        return found
