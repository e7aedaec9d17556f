"""Parameters that are computed at a loop of another stage: their turns together must compute every element, and turns that
run side by side none of the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from compassc.analysis.interpret import evaluate
from compassc.analysis.structure import variables
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.te.bounds import Bounds, Region
from compassc.te.schedule.annotation import Annotation
from compassc.te.schedule.stage import Stage, ceildiv, loops_around

MOST = 1 << 20
"""Elements that are looked at one by one."""


def why_not_whole(stage: Stage, bounds: Bounds, side_by_side: Callable[[Annotation], bool]) -> str:
    """Why a stage that is a parameter cannot be computed at its loop; an empty text where it can. `side_by_side`: whether
    the turns of a loop with that annotation run at the same time."""
    around = [(parent.annotations.get(leaf, Annotation()), bounds.loops[parent][leaf], bounds.extents[parent][leaf])
              for parent, leaf in loops_around(stage)]  # fmt: skip
    turns = {var: extent for _, var, extent in around if isinstance(var, Var)}
    shared = {var for note, var, _ in around if isinstance(var, Var) and side_by_side(note)}
    groups: list[tuple[list[IterVar], set[Var]]] = []
    for axis in stage.axis:
        group, used = [axis], variables(bounds.regions[stage][axis].min) & set(turns)
        for other in [g for g in groups if g[1] & used]:  # they move together
            groups.remove(other)
            group, used = [*other[0], *group], other[1] | used
        groups.append((group, used))
    for axes, used in groups:
        regions = {axis: bounds.regions[stage][axis] for axis in axes}
        reason = _along(regions, {var: turns[var] for var in used}, shared & used)
        if reason:
            return reason
    idle = shared - {v for _, used in groups for v in used}
    return f"all turns of '{min(v.name for v in idle)}' compute the same elements, side by side" if idle else ""


def _along(regions: Mapping[IterVar, Region], turns: Mapping[Var, Expr], shared: set[Var]) -> str:
    """Why not all of some axes is computed, or some of it twice at the same time."""
    if all(region.whole for region in regions.values()) and not shared:
        return ""
    names = ", ".join(f"'{axis.name}'" for axis in regions)
    loops = f"the turns of {', '.join(sorted(v.name for v in turns)) or 'its loop'}"
    unknown = f"it is not known whether {loops} compute all of {names}"
    ordered = sorted(turns, key=lambda v: (v not in shared, v.name))
    counts = [_number(turns[v]) for v in ordered]
    boxes = [
        _Box(region.min, *map(_number, (axis.dom.min, axis.dom.extent, region.extent)))
        for axis, region in regions.items()
        if axis.dom is not None
    ]
    if None in counts or any(None in (x.begin, x.count, x.extent) for x in boxes):
        return "" if len(regions) == 1 and _steps_through(next(iter(regions.items())), turns) else unknown
    if max(math.prod([*counts, *(x.extent for x in boxes)]), math.prod(x.count for x in boxes)) > MOST:
        return f"{names} have too many elements to look at"
    values = dict(zip(ordered, np.meshgrid(*[np.arange(n) for n in counts], indexing="ij")))
    own = math.prod(n for v, n in zip(ordered, counts) if v in shared)
    times = _times(boxes, values, tuple(counts), own)
    if times is None:
        return unknown
    if (times > 1).any():
        return f"turns of {', '.join(sorted(v.name for v in shared))} that run side by side compute the same elements"
    return "" if times.all() else f"{loops} compute a part of {names} only"


class _Box(NamedTuple):
    """What a turn computes of an axis: `extent` elements from `first` on, of the `count` from `begin` on."""

    first: Expr
    begin: Any
    count: Any
    extent: Any


def _times(boxes: Sequence[_Box], values: Mapping[Var, Any], turns: tuple[int, ...], own: int) -> Any:
    """How many threads compute each element; None where that is not known. `own`: how many threads there are; the turns of
    one are next to each other."""
    place, inside, total = np.zeros((*turns, *(1 for _ in boxes)), int), np.True_, 1
    for i, box in enumerate(boxes):
        first = evaluate(box.first, values, points=True)
        if first is None:
            return None
        steps = np.arange(box.extent).reshape([-1 if k == i else 1 for k in range(len(boxes))])
        index = np.broadcast_to(first, turns).reshape(*turns, *(1 for _ in boxes)) - box.begin + steps
        place, inside, total = place * box.count + index, inside & (0 <= index) & (index < box.count), total * box.count
    where = np.broadcast_to(inside, place.shape).reshape(own, -1)
    thread = np.arange(own)[:, None] * total
    computed = np.unique((thread + place.reshape(own, -1))[where]) % max(total, 1)
    return np.bincount(computed, minlength=total)


def _number(e: Expr) -> Any:
    return e.value if isinstance(e, IntImm) else None


def _steps_through(part: tuple[IterVar, Region], turns: Mapping[Var, Expr]) -> bool:
    """Whether one loop steps through an axis of open size, without a gap and without meeting anything twice."""
    axis, region = part
    if len(turns) != 1 or not isinstance(region.extent, IntImm) or axis.dom is None:
        return False
    ((var, extent),) = turns.items()
    step = region.extent
    moving: list[Expr] = [var] if step.value == 1 else [Binary("mul", var, step)]
    whole = axis.dom.extent if step.value == 1 else ceildiv(axis.dom.extent, step)
    at_zero = isinstance(axis.dom.min, IntImm) and axis.dom.min.value == 0
    return at_zero and str(region.min) == str(moving[0]) and str(extent) == str(whole)
