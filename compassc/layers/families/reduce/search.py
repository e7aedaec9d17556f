"""The search for the largest or smallest element along an axis, in kernels."""

from __future__ import annotations

from compass_core.namedtuple import NamedTuple
from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import LayerError
from compassc.layers.axes import AxisLoop
from compassc.layers.lane_arithmetic import across_max, across_min
from compassc.layers.vectors import LANES, WIDE


class Extreme(NamedTuple):
    """The index of an extreme element, and that of the first element of each lane."""

    place: Value
    origin: Value


_NUMBER = 1 << 30
"""Added to the places of elements that others precede which are as good: it is above all places."""


def find_extreme(w: AxisLoop, dtype: str, smallest: bool, last: bool) -> Extreme:
    """The first (or last) extreme element of `x`; where there is NaN, the first (or last) of these."""
    kind, k = WIDE.get(dtype), w.k
    if kind is None:
        raise LayerError(f"kernels do not compute with {dtype}")
    real = kind == "float32"
    neutral = ("inf" if smallest else "-inf") if real else 2**31 - 1 if smallest else -(2**31)
    best = w.start("best", neutral, kind)
    place = k.changing("place", w.lanes() if w.across else w.filled(0, "int32"))
    origin = k.held("origin", place + 0)
    with w.each() as index:
        v = k.let(w.active(w.load("x"), neutral, kind))
        better = k.held("better", _better(v, best, smallest, last, real))
        chosen = S.vsel(k.held("here", origin + index), place, better)
        # lanes behind the end hold nothing, also where all elements are as small as can be
        k.assign(place, S.vsel(chosen, place, k.mask) if w.partial else chosen)
        k.assign(best, S.vsel(v, best, better) if real else S.min(best, v) if smallest else S.max(best, v))
    if w.across:
        _across(w, best, place, origin, smallest, last, real)
    return Extreme(place, origin)


def _better(v: Value, best: Value, smallest: bool, last: bool, real: bool) -> Expression:
    """Where an element takes the place of the best one before it."""
    if not real:
        found: Expression = (v <= best if last else v < best) if smallest else v >= best if last else v > best
        return found
    if last:
        found = (v <= best if smallest else v >= best) | (v != v)  # noqa: PLR0124 (NaN is not)
        return found
    # not worse, which NaN is not either, and there was no NaN
    return S.vinv((v >= best if smallest else v <= best) | (best != best))  # noqa: PLR0124


def _across(w: AxisLoop, best: Value, place: Value, origin: Value, smallest: bool, last: bool, real: bool) -> None:
    """The best place of all lanes, left in `place`."""
    k = w.k
    own = k.held("own", best + 0)
    if real:
        # NaN counts as infinity, and comes before it
        nan = k.held("nan", own != own)  # noqa: PLR0124
        own = k.held("own", S.vsel(w.filled("-inf" if smallest else "inf", "float32"), own, nan))
        k.assign(best, own + 0)
        second = place | _NUMBER
        k.assign(place, S.vsel(second, place, nan) if last else S.vsel(place, second, nan))
    w.join(best, across_min if smallest else across_max)
    far = w.filled(-1 if last else 2**31 - 1, "int32")
    inside = k.held("inside", S.vsel(place, far, origin < k.number(min(w.count, LANES))))
    k.assign(place, S.vsel(inside, far, own == best))
    w.join(place, across_max if last else across_min)
    if real:
        k.assign(place, place & (_NUMBER - 1))
