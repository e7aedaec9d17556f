"""Circular buffers: what a turn of a loop computed stays for the next one, which computes only what is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compass_core.namedtuple import NamedTuple
from compassc.analysis.arith import Arith
from compassc.analysis.simplify import Simplifier
from compassc.analysis.structure import variables
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.operators import binary, kind_of
from compassc.ir.visit import substitute
from compassc.te.bounds import Bounds, Region
from compassc.te.errors import LowerError
from compassc.te.schedule.annotation import Annotation
from compassc.te.schedule.loops import is_tec
from compassc.te.schedule.stage import Stage


class Circular(NamedTuple):
    """The dimension along which a buffer is circular, its extent, and when an index along it is to be computed."""

    dim: int
    extent: int
    loop: Var
    fresh: Expr
    """The first index that the turn before did not compute."""

    def place(self, index: Expr) -> Expr:
        """Where in the buffer an index is."""
        return binary("floormod", index, IntImm(kind_of(self.loop), self.extent))

    def is_new(self, index: Expr) -> Expr:
        """The condition that an index was not computed before."""
        first = Binary("eq", self.loop, IntImm(kind_of(self.loop), 0))
        return Binary("or", first, Binary("le", self.fresh, index))


def circular_of(stage: Stage, bounds: Bounds) -> Circular:
    """How the buffer of a stage is circular. LowerError where parts of following turns do not overlap."""
    if stage.attached is None:
        raise _error(stage, "it is not computed at a loop of another stage")
    parent, leaf = stage.attached
    var = bounds.loops[parent].get(leaf)
    if not isinstance(var, Var):
        raise _error(stage, f"the loop '{leaf.name}' that it is computed at has one turn")
    if is_tec(parent.annotations.get(leaf, Annotation()).thread):
        raise _error(
            stage, f"the turns of '{leaf.name}' that it is computed at are shared out, and none comes after another"
        )
    regions = bounds.regions[stage]
    moving = [i for i, a in enumerate(stage.axis) if var in variables(regions[a].min)]
    if len(moving) != 1:
        raise _error(stage, f"{len(moving) or 'none'} of its dimensions move with '{leaf.name}'")
    return _along(stage, moving[0], regions[stage.axis[moving[0]]], var)


def _along(stage: Stage, dim: int, region: Region, var: Var) -> Circular:
    one = IntImm(kind_of(var), 1)
    following = substitute(region.min, {var: binary("add", var, one)})
    step = Simplifier(Arith()).expr(binary("sub", following, region.min))
    if not isinstance(step, IntImm) or not isinstance(region.extent, IntImm):
        raise _error(stage, f"dimension {dim} does not move by a constant number of elements")
    if not 0 < step.value < region.extent.value:
        raise _error(
            stage,
            f"a turn needs {region.extent.value} elements of dimension {dim} and moves by {step.value}: none stays",
        )
    kept = IntImm(kind_of(var), region.extent.value - step.value)
    return Circular(dim, region.extent.value, var, binary("add", region.min, kept))


def conditions(
    found: Circular | None, axes: Sequence[IterVar], values: Mapping[IterVar, Expr]
) -> list[tuple[str, Expr]]:
    """The condition of a point of a stage with a circular buffer, with what it is about."""
    if found is None:
        return []
    return [("its buffer is circular, so that not all is computed", found.is_new(values[axes[found.dim]]))]


def _error(stage: Stage, reason: str) -> LowerError:
    return LowerError(f"rolling_buffer of '{stage.label}': {reason}", "compute it at a loop whose turns overlap")
