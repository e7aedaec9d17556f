"""The search for the largest or smallest element along an axis, in kernels."""

from __future__ import annotations

import numpy as np

from compassc.graph import LayerError
from compassc.layers.axes import AxisLoop
from compassc.layers.source import LANES, KernelSource
from compassc.layers.vectors import WIDE


def find_extreme(k: KernelSource, w: AxisLoop, dtype: str, smallest: bool, last: bool) -> None:
    """`place`: the index of the first (or last) extreme element of `x`. What is not a number counts as extreme."""
    kind = WIDE.get(dtype)
    if kind is None:
        raise LayerError(f"kernels do not compute with {dtype}")
    real = kind == "float32"
    neutral = ('"inf"' if smallest else '"-inf"') if real else str(2**31 - 1 if smallest else -(2**31))
    winner, compare = ('"-inf"', "<") if smallest else ('"inf"', ">")
    own = f"S.vload({k.constant(np.arange(LANES, dtype=np.int32))}, lanes={LANES})" if w.across else "S.i32(0)"
    w.start("best", neutral, kind)
    k.do(f"place = {own if w.across else w.filled('0', 'int32')}")
    k.do("origin = place + 0")
    with w.each() as index:
        v = w.load("x").name
        if real:
            v = k.let(f"S.vsel({w.filled(winner, kind)}, {v}, S.isnan({v}))", kind).name
        v = k.let(w.active(v, neutral, kind), kind).name
        k.do(f"better = {v} {compare}{'=' if last else ''} best")
        k.do(f"here = origin + {index}")
        # lanes behind the end hold nothing, also where all elements are as small as can be
        taken = w.active("S.vsel(here, place, better)", "0", "int32").replace(w.filled("0", "int32"), "place")
        k.do(f"place = {taken}")
        k.do(f"best = S.{'min' if smallest else 'max'}(best, {v})")
    if w.across:
        k.do("own = best + 0")
        w.join("best", "across_min" if smallest else "across_max")
        far = "-1" if last else str(2**31 - 1)
        k.do(f"inside = S.vsel(place, {w.filled(far, 'int32')}, origin < {k.scalar(min(w.count, LANES))})")
        k.do(f"place = S.vsel(inside, {w.filled(far, 'int32')}, own == best)")
        w.join("place", "across_max" if last else "across_min")
