"""Parameters that are computed at a loop of another stage: their turns together must compute every element, and turns that
run side by side none of the same."""

from __future__ import annotations

import math
from collections.abc import Callable

from compassc.analysis.itermap import UNKNOWN, Digit, digits_of, disjoint, is_dense, separates
from compassc.analysis.structure import variables
from compassc.ir import exprs as E
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.visit import rewrite
from compassc.te.bounds import Bounds, Region
from compassc.te.schedule.annotation import Annotation
from compassc.te.schedule.loops import ceildiv, loops_around
from compassc.te.schedule.stage import Stage


def why_not_whole(stage: Stage, bounds: Bounds, side_by_side: Callable[[Annotation], bool]) -> str:
    """Why a stage that is a parameter cannot be computed at its loop; an empty text where it can. `side_by_side`: whether
    the turns of a loop with that annotation run at the same time."""
    around = [(parent.annotations.get(leaf, Annotation()), bounds.loops[parent][leaf], bounds.extents[parent][leaf])
              for parent, leaf in loops_around(stage)]  # fmt: skip
    turns = {var: extent for _, var, extent in around if isinstance(var, Var)}
    shared = sorted((v.name, v) for note, v, _ in around if isinstance(v, Var) and side_by_side(note))
    parts = _Parts(turns, {axis: bounds.regions[stage][axis] for axis in stage.axis})
    return parts.why_not_all() or next((why for _, v in shared if (why := parts.why_not_apart(v))), "")


class _Parts:
    """What the turns of loops compute of some axes, by the digits of the loops."""

    def __init__(self, turns: dict[Var, Expr], regions: dict[IterVar, Region]) -> None:
        self.turns, self.regions = turns, regions
        self.sizes = {var: _number(extent, UNKNOWN) for var, extent in turns.items()}
        self.indices: dict[IterVar, Expr] = {}
        """For each axis the index of an element, from the first one of the axis on."""
        for axis, region in regions.items():
            inner = Var(axis.name, INT32, True)
            self.sizes[inner] = _number(region.extent, UNKNOWN)
            first = region.min if axis.dom is None else Binary("sub", region.min, axis.dom.min)
            self.indices[axis] = rewrite(Binary("add", inner, first), _narrow)

    def _used(self, axis: IterVar) -> set[Var]:
        return variables(self.regions[axis].min) & set(self.turns)

    def why_not_all(self) -> str:
        """Why the turns compute not all elements; an empty text where they do."""
        digits: list[Digit] = []
        for axis, region in self.regions.items():
            if region.whole or axis.dom is None:
                continue
            loops = f"the turns of {', '.join(sorted(v.name for v in self._used(axis))) or 'its loop'}"
            unknown = f"it is not known whether {loops} compute all of '{axis.name}'"
            count, extent = _number(axis.dom.extent, 0), _number(region.extent, 0)
            if not count or not extent or any(self.sizes[v] == UNKNOWN for v in self._used(axis)):
                if self._steps_through(axis, region):
                    continue
                return unknown
            if extent * math.prod(self.sizes[v] for v in self._used(axis)) < count:
                return f"{loops} compute a part of '{axis.name}' only"
            form = digits_of(self.indices[axis], self.sizes, down=True)
            if form is None or form.moved or not is_dense(form):
                return unknown
            if form.base > 0 or form.base + form.span < count - 1:
                return f"{loops} compute a part of '{axis.name}' only"
            digits += form.digits
        return "" if disjoint(digits) else "it is not known whether the turns compute all of it: its axes move together"

    def why_not_apart(self, var: Var) -> str:
        """Why turns of a loop compute the same elements, as far as is known; an empty text where they do not."""
        if not any(var in self._used(axis) for axis in self.regions):
            return f"all turns of '{var.name}' compute the same elements, side by side"
        if separates(list(self.indices.values()), self.sizes, var, down=True):
            return ""
        return f"turns of {var.name} that run side by side compute the same elements, as far as is known"

    def _steps_through(self, axis: IterVar, region: Region) -> bool:
        """Whether one loop steps through an axis of open size, without a gap and without meeting anything twice."""
        used = self._used(axis)
        others = {v for a in self.regions if a is not axis for v in self._used(a)}
        if len(used) != 1 or used & others or not isinstance(region.extent, IntImm) or axis.dom is None:
            return False
        (var,) = used
        step = region.extent
        moving: Expr = var if step.value == 1 else Binary("mul", var, step)
        whole = axis.dom.extent if step.value == 1 else ceildiv(axis.dom.extent, step)
        return _number(axis.dom.min, 1) == 0 and str(region.min) == str(moving) and str(self.turns[var]) == str(whole)


def _number(e: Expr, otherwise: int) -> int:
    return e.value if isinstance(e, IntImm) else otherwise


def _narrow(e: Expr) -> Expr | None:
    """Index arithmetic without its conversions between types of integers."""
    if isinstance(e, E.Cast) and e.dtype.is_integer:
        return rewrite(e.value, _narrow)
    return None
