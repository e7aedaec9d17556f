"""The search for the largest or smallest element along an axis, in kernels."""

from __future__ import annotations

from typing import NamedTuple

from compassc.build import Value
from compassc.dsl import script as S
from compassc.graph import LayerError
from compassc.layers.axes import AxisLoop
from compassc.layers.joins import across_max, across_min
from compassc.layers.vectors import LANES, WIDE


class Extreme(NamedTuple):
    """The index of an extreme element, and that of the first element of each lane."""

    place: Value
    origin: Value


def find_extreme(w: AxisLoop, dtype: str, smallest: bool, last: bool) -> Extreme:
    """The first (or last) extreme element of `x`. What is not a number counts as extreme."""
    kind, k = WIDE.get(dtype), w.k
    if kind is None:
        raise LayerError(f"kernels do not compute with {dtype}")
    real = kind == "float32"
    neutral = ("inf" if smallest else "-inf") if real else 2**31 - 1 if smallest else -(2**31)
    winner = "-inf" if smallest else "inf"
    best = w.start("best", neutral, kind)
    place = k.changing("place", w.lanes() if w.across else w.filled(0, "int32"))
    origin = k.held("origin", place + 0)
    with w.each() as index:
        v = w.load("x")
        if real:
            v = k.let(S.vsel(w.filled(winner, kind), v, S.isnan(v)))
        v = k.let(w.active(v, neutral, kind))
        better = k.held("better", (v <= best if last else v < best) if smallest else v >= best if last else v > best)
        chosen = S.vsel(k.held("here", origin + index), place, better)
        # lanes behind the end hold nothing, also where all elements are as small as can be
        k.assign(place, S.vsel(chosen, place, k.mask) if w.partial else chosen)
        k.assign(best, S.min(best, v) if smallest else S.max(best, v))
    if w.across:
        own = k.held("own", best + 0)
        w.join(best, across_min if smallest else across_max)
        far = w.filled(-1 if last else 2**31 - 1, "int32")
        inside = k.held("inside", S.vsel(place, far, origin < k.number(min(w.count, LANES))))
        k.assign(place, S.vsel(inside, far, own == best))
        w.join(place, across_max if last else across_min)
    return Extreme(place, origin)
