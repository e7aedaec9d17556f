"""Going between the axes of an operation and the loops of its stage: extents down, values up, guards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from compass_core.dataclass import dataclass
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Binary, Expr, IntImm
from compassc.ir.iter_vars import IterVar
from compassc.ir.operators import binary, kind_of
from compassc.te.schedule.loops import ceildiv, exact_quotient, full_extent

if TYPE_CHECKING:
    from compassc.te.schedule.stage import Stage


@dataclass(frozen=True)
class Split:
    """`parent` became `outer` and `inner`: one of `factor` (the inner extent) and `nparts` (the outer one) is given."""

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: Expr | None
    nparts: Expr | None


@dataclass(frozen=True)
class Fuse:
    """`outer` and `inner` became `fused`."""

    outer: IterVar
    inner: IterVar
    fused: IterVar


@dataclass(frozen=True)
class Singleton:
    """A loop of one turn that was added."""

    axis: IterVar


Relation = Split | Fuse | Singleton


def leaf_extents(stage: Stage, roots: Mapping[IterVar, Expr] | None = None) -> dict[IterVar, Expr]:
    """The extent of each axis of a stage. `roots`: those of the operation's axes, where they are not the declared."""
    extents = {a: (roots or {}).get(a, full_extent(a)) for a in (*stage.axis, *stage.reduce_axis)}
    for relation in stage.relations:
        if isinstance(relation, Split):
            whole = extents[relation.parent]
            if relation.factor is not None:
                extents[relation.inner] = inner = _no_more(relation.factor, whole)
                extents[relation.outer] = ceildiv(whole, inner)
            else:
                assert relation.nparts is not None
                extents[relation.outer] = outer = _no_more(relation.nparts, whole)
                extents[relation.inner] = ceildiv(whole, outer)
        elif isinstance(relation, Fuse):
            product = binary("mul", extents[relation.outer], extents[relation.inner])
            extents[relation.fused] = product
        elif isinstance(relation, Singleton):
            extents[relation.axis] = full_extent(relation.axis)
    return extents


def _no_more(turns: Expr, whole: Expr) -> Expr:
    """The turns of one side of a split: none beyond a whole that is known."""
    if isinstance(turns, IntImm) and isinstance(whole, IntImm):
        return turns if turns.value <= whole.value or whole.value < 1 else IntImm(kind_of(turns), whole.value)
    return turns


def root_values(
    stage: Stage, extents: Mapping[IterVar, Expr], loops: Mapping[IterVar, Expr], counted: bool = False
) -> dict[IterVar, Expr]:
    """The value of each axis by the values of the loops; axes whose loops are not given are left out.

    `counted`: from 0; else axes of the operation begin at their own minimum.
    """
    values = dict(loops)
    for relation in reversed(stage.relations):
        if isinstance(relation, Split) and relation.outer in values and relation.inner in values:
            outer, inner = values[relation.outer], values[relation.inner]
            values[relation.parent] = outer * extents[relation.inner] + inner
        elif isinstance(relation, Fuse) and relation.fused in values:
            fused, by = values[relation.fused], _divisor(extents[relation.inner])
            values[relation.outer], values[relation.inner] = fused // by, fused % by
    if not counted:
        for axis in (*stage.axis, *stage.reduce_axis):
            if axis in values and axis.dom is not None:
                values[axis] = binary("add", values[axis], axis.dom.min)
    return values


def _divisor(extent: Expr) -> Expr:
    """An extent to divide by: of loops without turns another one."""
    return IntImm(kind_of(extent), 1) if isinstance(extent, IntImm) and extent.value == 0 else extent


def roots_of(stage: Stage, axis: IterVar) -> set[IterVar]:
    """The axes of a stage that one of its loops is made of."""
    for relation in stage.relations:
        if isinstance(relation, Split) and axis in (relation.outer, relation.inner):
            return roots_of(stage, relation.parent)
        if isinstance(relation, Fuse) and axis is relation.fused:
            return roots_of(stage, relation.outer) | roots_of(stage, relation.inner)
    return {axis}


def leaf_values(stage: Stage, extents: Mapping[IterVar, Expr], roots: Mapping[IterVar, Expr]) -> dict[IterVar, Expr]:
    """The values of the loops by those of the axes, which count from 0: what `root_values` turns round."""
    values = dict(roots)
    for relation in stage.relations:
        if isinstance(relation, Split) and relation.parent in values:
            whole, by = values[relation.parent], _divisor(extents[relation.inner])
            values[relation.outer], values[relation.inner] = whole // by, whole % by
        elif isinstance(relation, Fuse) and relation.outer in values and relation.inner in values:
            outer, inner = values[relation.outer], values[relation.inner]
            values[relation.fused] = outer * extents[relation.inner] + inner
        elif isinstance(relation, Singleton):
            values[relation.axis] = IntImm(INT32, 0)
    return values


def predicates(
    stage: Stage,
    extents: Mapping[IterVar, Expr],
    loops: Mapping[IterVar, Expr],
    concerns: Callable[[IterVar], bool] = lambda axis: True,
) -> list[tuple[IterVar, Expr]]:
    """The conditions under which a turn of the loops is one of the operation's: `axis < extent` for each split that
    does not divide."""
    values = root_values(stage, extents, loops, counted=True)
    found: list[tuple[IterVar, Expr]] = []
    for relation in stage.relations:
        if isinstance(relation, Split) and concerns(relation.parent) and relation.parent in values:
            inner, whole = extents[relation.inner], extents[relation.parent]
            if not _divides(inner, extents[relation.outer], whole):
                found.append((relation.parent, Binary("lt", values[relation.parent], whole)))
    return found


def _divides(inner: Expr, outer: Expr, whole: Expr) -> bool:
    if exact_quotient(whole, inner) is not None or exact_quotient(whole, outer) is not None:
        return True
    numbers = [e.value for e in (inner, outer, whole) if isinstance(e, IntImm)]
    return len(numbers) == 3 and numbers[0] * numbers[1] == numbers[2]
