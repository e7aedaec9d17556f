"""Branches that are rescaled on their way to their place: tiles of rows through LSRAM."""

from __future__ import annotations

from typing import NamedTuple

from compassc.build import Value
from compassc.graph import Tensor
from compassc.layers.machine import Share, tasks
from compassc.layers.source import LANES, KernelSource, last_cleared, loaded
from compassc.layers.vectors import pointee

TILE = Share(2)
"""LSRAM for a tile of each side."""
_BYTES = {"8": 1, "6": 2, "2": 4}


class Branch(NamedTuple):
    """Consecutive rows of a tensor and their destination: its first element, and the distance between rows."""

    rows: int
    width: int
    first: int
    step: int


def rescaled(
    k: KernelSource,
    x: Tensor,
    y: Tensor,
    b: Branch,
    pointers: tuple[str, str],
    body: list[str],
    result: Value,
    tag: str,
) -> list[str]:
    """The loops around `body`, which leads from the lanes `x` to `result`."""
    elements = TILE.size // max(_BYTES[t.dtype[-1]] for t in (x, y))
    wide = min(b.width, elements)
    tall = 1 if wide < b.width else max(1, min(elements // wide, -(-b.rows // tasks())))
    across = -(-b.width // wide)
    for name in ("from_tile", "to_tile"):
        line = f'{name} = S.alloc({TILE.size // 4 + LANES}, "int32", scope="lsram")'
        if line not in k.head:
            k.head.append(line)
    n = {name: k.scalar(v) for name, v in {
        "items": -(-b.rows // tall) * across, "across": across, "tall": tall, "wide": wide, "rows": b.rows,
        "width": b.width, "first": b.first, "step": b.step,
    }.items()}  # fmt: skip
    n |= {"t": tag, "x": pointers[0], "y": pointers[1], "in_": pointee(x.dtype), "out_": pointee(y.dtype)}
    n |= {"lanes": str(LANES), "y_type": y.dtype, "result": result.name}
    lines = [
        'here{t} = from_tile.as_ptr("{in_}")',
        'there{t} = to_tile.as_ptr("{out_}")',
        "for item{t} in range(S.get_local_id(), {items}, S.get_local_size()):",
        "    row{t} = item{t} / {across} * {tall}",
        "    at{t} = item{t} % {across} * {wide}",
        "    high{t} = S.min({tall}, {rows} - row{t})",
        "    now{t} = S.min({wide}, {width} - at{t})",
        "    " + last_cleared("here{t}", "(high{t} * now{t})", x.dtype),
        "    S.dma_copy(here{t}, {x} + row{t} * {width} + at{t}, now{t}, {width}, high{t}, now{t})",
        "    for e{t} in range(0, high{t} * now{t}, {lanes}):",
        *(f"        {line}" for line in loaded("x", "here{t} + e{t}", x.dtype)),
        *("        " + line.replace("{", "{{").replace("}", "}}") for line in body),
        '        S.vstore(narrow({result}, "{y_type}"), there{t} + e{t})',
        "    S.dma_copy({y} + {first} + row{t} * {step} + at{t}, there{t}, now{t}, now{t}, high{t}, {step})",
    ]
    return [line.format(**n) for line in lines]
