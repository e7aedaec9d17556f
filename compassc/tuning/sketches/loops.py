"""The loops of a stage inside of a tile: vectors, what is unrolled, accumulators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compass_core.targets import Target
from compassc.ir.iter_vars import IterVar
from compassc.te.schedule import Stage
from compassc.topi.schedules.stages import along, extent_of, reads_of, uses, widest
from compassc.tuning.sketches.choices import Choices, sizes_of

_COPIES = 32
"""Copies of a statement that unrolling may make."""
_SIDE = 8
"""Accumulators along an axis, at most."""


def inner_loops(stage: Stage, choices: Choices, target: Target, axes: Sequence[IterVar]) -> None:
    """A map, or a reduction of one loop: its last axis in vectors, some of them in a row."""
    if not axes:
        return
    axis = axes[-1]
    extent = _known(stage, axis)
    lanes = choices.one_of(f"{stage.label}.lanes", _lanes(target.vector_bytes // widest(stage), extent))
    if lanes < 2:
        return
    outer, inner = stage.split(axis, factor=lanes)
    rest = [a for a in stage.leaf_iter_vars if a is not outer and a is not inner]
    turns = max(extent // lanes, 1) if extent else 1
    times = choices.one_of(f"{stage.label}.unroll", [t for t in (1, 2, 4, 8) if t == 1 or turns % t == 0])
    if times > 1:
        outer, some = stage.split(outer, factor=times)
        stage.reorder(*rest, outer, some, inner)
        stage.unroll(some)
    else:
        stage.reorder(*rest, outer, inner)
    stage.vectorize(inner)


def _known(stage: Stage, axis: IterVar) -> int:
    """The extent of an axis; 0 for one that is inferred."""
    return extent_of(axis) if axis.dom is not None else 0


def _lanes(native: int, extent: int) -> list[int]:
    """Numbers of lanes: registers, and some of them together."""
    found = [native * t for t in (1, 2, 4, 8) if not extent or native * t <= extent]
    return found or [1 << (extent.bit_length() - 1) if extent > 1 else 1]


def reduction_loops(stage: Stage, choices: Choices, target: Target, sizes: Mapping[str, int]) -> IterVar:
    """A reduction: accumulators for some elements of the tile, side by side, with the loops of the sum around them.
    `sizes`: of the tile, by the names of the axes; empty where there is a single element. Gives the outermost loop of
    the sum."""
    lane_axis, lanes = _vector(stage, choices, target, sizes)
    outers: list[IterVar] = []
    tile: list[IterVar] = []
    vector: list[IterVar] = []
    copies = 1
    for axis in stage.axis:
        per = lanes if axis is lane_axis else 1
        extent = max(sizes.get(_plain(axis), 1) // per, 1)
        most = min(_COPIES // copies, _SIDE)
        times = choices.one_of(f"{stage.label}.{axis.name}", [t for t in range(1, most + 1) if extent % t == 0])
        copies *= times
        outer, inner = stage.split(axis, factor=times * per)
        if axis is lane_axis:
            inner, lane = stage.split(inner, factor=per)
            vector.append(lane)
        outers.append(outer)
        tile.append(inner)
    sums: list[tuple[IterVar, int]] = []
    for axis in stage.reduce_axis:
        extent = extent_of(axis)
        if axis is lane_axis:
            axis, lane = stage.split(axis, factor=min(lanes, extent))
            extent = -(-extent // lanes)
            vector.append(lane)
        sums.append((axis, extent))
    stay, unrolled, deep = _sums(stage, choices, sums, copies)
    around = [deep] if deep is not None else []
    stage.reorder(*around, *outers, *stay, *unrolled, *tile, *vector)
    for loop in (*unrolled, *tile):
        stage.unroll(loop)
    for loop in vector:
        stage.vectorize(loop)
    return [*around, *stay, *unrolled, *outers][0]


def _vector(stage: Stage, choices: Choices, target: Target, sizes: Mapping[str, int]) -> tuple[IterVar | None, int]:
    """The axis that becomes vectors, and of how many lanes."""
    ways = _ways(stage)
    way = choices.one_of(f"{stage.label}.vector", list(ways))
    axis = ways[way]
    if axis is None:
        return None, 1
    narrow = min((r.producer.dtype.bytes for r in reads_of(stage)), default=4)
    size = narrow if way == "sum" else stage.origin_op.output(0).dtype.bytes
    extent = extent_of(axis) if way == "sum" else sizes.get(_plain(axis), extent_of(axis))
    return axis, choices.one_of(f"{stage.label}.lanes", _lanes(target.vector_bytes // size, extent))


def _sums(
    stage: Stage, choices: Choices, loops: list[tuple[IterVar, int]], copies: int
) -> tuple[list[IterVar], list[IterVar], IterVar | None]:
    """The loops of the sum: those that stay, those that are unrolled, and the one that goes around everything."""
    stay, unrolled = [], []
    deep: IterVar | None = None
    biggest = max((e for _, e in loops), default=1)
    for axis, extent in loops:
        name = f"{stage.label}.{axis.name}"
        if extent == biggest and extent >= 8 and deep is None:
            parts = [p for p in sizes_of(extent) if p < extent][:12]
            count = choices.one_of(f"{name}.parts", parts, [8.0, *[1.0] * (len(parts) - 1)])
            if count > 1:
                deep, axis = stage.split(axis, nparts=count)
                extent = -(-extent // count)
        if 1 < extent <= 4 and copies * extent <= _COPIES and choices.one_of(f"{name}.unroll", [True, False]):
            unrolled.append(axis)
            copies *= extent
            continue
        steps = [t for t in (1, 2, 4) if t == 1 or (extent % t == 0 and copies * t <= _COPIES)]
        times = choices.one_of(f"{name}.unroll", steps) if extent > 4 else 1
        if times > 1:
            axis, inner = stage.split(axis, factor=times)
            unrolled.append(inner)
            copies *= times
        stay.append(axis)
    return stay, unrolled, deep


def _ways(stage: Stage) -> dict[str, IterVar | None]:
    """What may become vectors: the loop that all reads run along (`sum`), the last axis (`last`), or nothing."""
    found: dict[str, IterVar | None] = {}
    summed = along(stage)
    if summed is not None and extent_of(summed) > 1:
        found["sum"] = summed
    last = stage.axis[-1] if stage.axis else None
    if last is not None and any(uses(r, last, last=True) for r in reads_of(stage)):
        found["last"] = last
    return found or {"none": None}


def _plain(axis: IterVar) -> str:
    """The name of an axis, as the output calls it."""
    return axis.name.removesuffix(".c")
