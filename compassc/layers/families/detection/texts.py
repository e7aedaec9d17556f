"""Parts of the texts of kernels that are not ported yet."""

from __future__ import annotations

from collections.abc import Sequence

from compass_core.arrays import Array
from compassc.graph import Tensor
from compassc.layers.emit import wide_kind

Lines = list[str]
Numbers = dict[str, "float | int | Array | Tensor"]


def zeros(tensor: Tensor, at: str) -> str:
    return f'{at} = narrow(S.cast(0, "{wide_kind(tensor)}"), "{tensor.dtype}")'


def list_end(outputs: Sequence[Tensor]) -> Lines:
    """Lines that store how many classes are listed, and fill what nothing took."""
    scores, boxes, counts, labels, many = outputs
    return [
        f'many[n] = narrow(listed, "{many.dtype}")',
        "for z in range(listed, slots):",
        "    " + zeros(counts, "counts[n * slots + z]"),
        "    " + zeros(labels, "labels[n * slots + z]"),
        "for z in range(filled, room):",
        "    " + zeros(scores, "out_scores[n * room + z]"),
        "    for e in range(4):",
        "        " + zeros(boxes, "out_boxes[(n * room + z) * 4 + e]"),
    ]


def whole_number(tensor: Tensor, name: str) -> str:
    """A count as it is stored."""
    return (
        f'S.cast(S.cast({name}, "float32"), "{tensor.dtype}")'
        if not tensor.is_integer
        else f'narrow({name}, "{tensor.dtype}")'
    )


def entry_lines(name: str, table: str, at: str, extra: int, last: int | None = None) -> Lines:
    """`name`: the entry of a table at an index from 0, with `extra` bits between entries, rounded down there.

    `last`: the last entry's place in a table that does not end with a copy of it.
    """
    if extra <= 0:
        return [f"{name} = S.i32({table}[{at}])"]
    following = f"(at_{name} >> {extra}) + 1"
    return [
        f"at_{name} = {at}",
        f"low_{name} = S.i32({table}[at_{name} >> {extra}])",
        f"step_{name} = S.i32({table}[{following if last is None else f'S.min({following}, {last})'}]) - low_{name}",
        f"{name} = low_{name} + ((step_{name} * (at_{name} & {(1 << extra) - 1})) >> {extra})",
    ]
