"""Which memory an operation reads and writes, as data: used by parameter roles and extents.

Per operation: a list of (operand index, "r" or "w", bytes touched from that address on). A byte count is an int, an
operand index wrapped in `Arg`, or an operator list over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..ir import exprs as E


@dataclass(frozen=True)
class Arg:
    """The value of an operand."""

    index: int


def _rows(width: int, stride: int, size: int) -> list[Any]:
    """Bytes from the first row's start to the last row's end of a strided copy; operands by index, all in bytes."""
    return ["strided", Arg(width), Arg(stride), Arg(size)]


def _transpose(outer: int, stride: int, inner: int) -> list[Any]:
    return ["mul", ["add", ["mul", ["sub", Arg(outer), 1], Arg(stride)], Arg(inner)], "itemsize"]


_DMA = [(0, "w", _rows(2, 5, 4)), (1, "r", _rows(2, 3, 4))]
_UPSAMPLE_DST = ["mul", ["add", ["mul", ["sub", Arg(2), 1], Arg(8)], ["mul", Arg(5), Arg(3)]], Arg(7)]

TABLE: dict[str, list[tuple[int, str, Any]]] = {
    "vload": [(0, "r", "lanes")],
    "vstore": [(1, "w", "lanes")],
    "vload_gather": [(0, "r", None)],
    "vstore_scatter": [(1, "w", None)],
    "dma_copy": _DMA,
    "async_dma_copy": _DMA,
    "dma_transpose2d": [(0, "r", _transpose(3, 4, 2)), (1, "w", _transpose(2, 5, 3))],
    "dma_upsample": [
        (0, "w", _UPSAMPLE_DST),
        (1, "r", ["add", ["mul", ["sub", Arg(5), 1], Arg(6)], Arg(4)]),
    ],
    "dma_memset": [(0, "w", Arg(1))],
    "vmma": [(0, "w", 64)],
    "vmml": [(0, "w", 64)],
}


def touched(call: E.Call) -> list[tuple[int, str, Any]]:
    """(operand index, "r"/"w", byte count) of the memory a call touches."""
    return TABLE.get(call.op, [])


def accesses(call: E.Call, mask_count: Callable[[Any, int], Any]) -> Iterator[tuple[E.Expr, Any]]:
    """(address, byte count) of each access of a call. `mask_count(mask, lanes)` gives the lanes a mask can reach."""
    for index, _, size in touched(call):
        yield call.args[index], ["?"] if size is None else _resolve(size, call, mask_count)


def _resolve(size: Any, call: E.Call, mask_count: Callable[[Any, int], Any]) -> Any:
    if isinstance(size, Arg):
        return call.args[size.index]
    if isinstance(size, list):
        return [size[0], *(_resolve(x, call, mask_count) for x in size[1:])]
    if size == "itemsize":
        return call.attr("itemsize")
    if size == "lanes":
        vector = call.dtype if call.op == "vload" else call.args[0].dtype
        reach = mask_count(call.mask, vector.lanes)
        stride = call.args[-1]
        last = ["add", ["mul", ["sub", reach, 1], stride], 1]
        return ["mul", ["select", ["gt", reach, 0], last, 0], vector.bytes]
    return size
