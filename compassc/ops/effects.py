"""Which memory an operation reads and writes, as data: used by parameter roles, extents and checks.

The byte count of a `Touch` is an int, an operand index wrapped in `Arg`, "lanes" (the vector's, with the call's stride and
mask), "itemsize" (the attribute), or an operator list over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from compass_core.dataclass import dataclass

from ..ir import exprs as E
from . import core
from .core import Size, Touch

Extent: TypeAlias = "E.Expr | Size | Sequence[Extent]"
"""The bytes of an access of a call: those of its declaration with the call's expressions in the places of operands."""


@dataclass(frozen=True)
class Arg:
    """The value of an operand."""

    index: int


def rows(width: int, stride: int, size: int) -> list[Size]:
    """Bytes from the first row's start to the last row's end of a strided copy; operands by index, all in bytes."""
    return ["strided", Arg(width), Arg(stride), Arg(size)]


def grid(outer: int, stride: int, inner: int) -> list[Size]:
    """Bytes of `outer` rows of `inner` elements, `stride` elements apart; operands by index."""
    return ["mul", ["add", ["mul", ["sub", Arg(outer), 1], Arg(stride)], Arg(inner)], "itemsize"]


def touched(call: E.Call) -> tuple[Touch, ...]:
    """The memory that a call touches."""
    op = core.load().get(call.op)
    return () if op is None else op.touches


def accesses(call: E.Call, mask_count: Callable[[E.Expr | None, int], Extent]) -> Iterator[tuple[E.Expr, Extent]]:
    """(address, byte count) of each access of a call. `mask_count(mask, lanes)` gives the lanes a mask can reach."""
    for index, _, size in touched(call):
        yield call.args[index], ["?"] if size is None else _resolve(size, call, mask_count)


def _resolve(size: Size, call: E.Call, mask_count: Callable[[E.Expr | None, int], Extent]) -> Extent:
    if isinstance(size, Arg):
        return call.args[size.index]
    if isinstance(size, list):
        return [size[0], *(_resolve(x, call, mask_count) for x in size[1:])]
    if size == "itemsize":
        count: int = call.attr("itemsize")
        return count
    if size == "lanes":
        vector = call.dtype if call.op == "vload" else call.args[0].dtype
        reach = mask_count(call.mask, vector.lanes)
        stride = call.args[-1]
        last: Extent = ["add", ["mul", ["sub", reach, 1], stride], 1]
        return ["mul", ["select", ["gt", reach, 0], last, 0], vector.bytes]
    return size
