"""Bounds by the framework's rules: stages of the outermost level are computed as far as they are read, and which loops over threads
stand still around a stage follows from its memory."""

from __future__ import annotations

from collections.abc import Mapping

from compassc.analysis.arith import Arith
from compassc.ir.exprs import Expr, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.operators import binary, kind_of
from compassc.te.analyzer import Analyzer
from compassc.te.bounds import Bounds, Inference, Interval, Region, full
from compassc.te.opaque import ScanOp
from compassc.te.schedule.loops import exact_quotient, loops_around
from compassc.te.schedule.relations import Fuse, Singleton, Split
from compassc.te.schedule.stage import Stage
from compassc.te.tensor import ComputeOp

_RANKS = {"global": 0, "shared": 1, "warp": 2, "local": 3, "private": 3, "lsram": 3}
"""How few threads have a memory together: all, those of a block, of a warp, one."""


def _rank(thread: IterVar) -> int:
    """How far inside a thread is: 0 of a grid, 1 of a block."""
    return 0 if thread.thread_tag.startswith("blockIdx") else 1


def _thread(stage: Stage, leaf: IterVar) -> IterVar | None:
    note = stage.annotations.get(leaf)
    return None if note is None else note.thread


class ByNeed(Inference):
    """The framework's rules. Loops over one thread have its variable."""

    def by_need(self, stage: Stage) -> bool:
        readers = self.schedule.readers(stage)
        scans = any(isinstance(r.origin_op, ScanOp) for r in readers)
        return isinstance(stage.origin_op, ComputeOp) and not stage.is_output and bool(readers) and not scans

    def regions(self, stage: Stage) -> dict[IterVar, Region]:
        found = super().regions(stage)
        if stage.attached is not None or not self.by_need(stage):
            return found
        return {axis: _inside(region, axis) for axis, region in found.items()}

    def counter(self, stage: Stage, leaf: IterVar, extent: Expr) -> Expr:
        thread = _thread(stage, leaf)
        return super().counter(stage, leaf, extent) if thread is None else thread.var

    def fixed(self, stage: Stage) -> set[Var]:
        if stage.attached is None:
            return set()
        self.depth(stage, *stage.attached)
        around = loops_around(stage)
        inner = max((_rank(t) for t in (_thread(*at) for at in around) if t is not None), default=-1)
        scope = stage.asked_scope or stage.scope
        rank = _RANKS[scope.split(".")[0]] if scope else (0, 1, 3)[inner + 1]
        still: set[Var] = set()
        for parent, leaf in [*around, *((s, a) for s in self.found.loops for a in s.leaf_iter_vars)]:
            thread, var = _thread(parent, leaf), self.found.loops[parent][leaf]
            if not isinstance(var, Var):
                continue
            if thread is None:
                stands = (parent, leaf) in around
            else:
                shared = rank <= _rank(thread) or (rank == _RANKS["warp"] and thread.thread_tag == "threadIdx.x")
                stands = not shared
            if stands:
                still.add(var)
        return still

    def counted(self, level: Stage, intervals: Mapping[Var, Interval]) -> dict[IterVar, Interval]:
        """By the steps on loops, backwards: parts of fused loops reach as far as the loops do."""
        extents = self.found.extents[level]
        simplify = Analyzer().simplify
        values: dict[IterVar, Interval] = {}
        for leaf, var in self.found.loops[level].items():
            values[leaf] = intervals.get(var, (var, var)) if isinstance(var, Var) else (var, var)
        for relation in reversed(level.relations):
            if isinstance(relation, Split):
                outer, inner = values[relation.outer], values[relation.inner]
                by = extents[relation.inner]
                if _is_full(outer, extents[relation.outer]) and _is_full(inner, by):
                    values[relation.parent] = full(extents[relation.parent])
                    continue
                low, high = (simplify(binary("add", binary("mul", a, by), b)) for a, b in zip(outer, inner))
                if _is_full(inner, by):
                    one = IntImm(kind_of(by), 1)
                    high = binary("sub", binary("mul", binary("add", outer[1], one), by), one)
                point = outer[0] is outer[1] and inner[0] is inner[1]
                values[relation.parent] = (low, low) if point else (low, high)
            elif isinstance(relation, Fuse):
                parts = _parts(values[relation.fused], extents[relation.outer], extents[relation.inner])
                values[relation.outer], values[relation.inner] = parts
            else:
                assert isinstance(relation, Singleton)
        return {axis: values[axis] for axis in (*level.axis, *level.reduce_axis)}


def _is_full(found: Interval, extent: Expr) -> bool:
    """Whether values are all that a loop has."""
    low, high = full(extent)
    return str(found[0]) == str(low) and str(found[1]) == str(high)


def _parts(fused: Interval, outer: Expr, inner: Expr) -> tuple[Interval, Interval]:
    """The values of two loops by those of the one that they became."""
    low, high = fused
    if _is_full(fused, binary("mul", outer, inner)):
        return full(outer), full(inner)
    row, column = binary("floordiv", low, inner), binary("floormod", low, inner)
    if low is high:
        return (row, row), (column, column)
    simplify = Analyzer().simplify
    count = simplify(binary("add", binary("sub", high, low), IntImm(kind_of(low), 1)))
    if all(_is_multiple(e, count) for e in (inner, low)):  # turns within one row
        last = binary("sub", binary("add", column, count), IntImm(kind_of(low), 1))
        return (row, row), (column, last)
    return (row, binary("floordiv", high, inner)), full(inner)


def _is_multiple(e: Expr, count: Expr) -> bool:
    """Whether an index is a multiple of a number of turns: indices do not wrap round."""
    if not isinstance(count, IntImm):
        return e is count or exact_quotient(e, count) is not None
    form = Arith().linear(e)
    return all(n % count.value == 0 for n in (form.const, *form.terms.values()))


def _inside(region: Region, axis: IterVar) -> Region:
    """A region as it is, which needs no conditions where all of it is there; all that is declared, where that is not known."""
    assert axis.dom is not None
    ends = (region.min, region.extent, axis.dom.min, axis.dom.extent)
    numbers = [e.value for e in ends if isinstance(e, IntImm)]
    if len(numbers) < len(ends):
        return Region(axis.dom.min, axis.dom.extent, True)
    low, count, first, all_of_it = numbers
    return Region(region.min, region.extent, first <= low and low + count <= first + all_of_it)


def by_axes(bounds: Bounds) -> dict[Var, Expr]:
    """The variables of loops by those of the axes that the framework calls them by, which begin where the axes do."""
    found: dict[Var, Expr] = {}
    for stage, loops in bounds.loops.items():
        for leaf, var in loops.items():
            if isinstance(var, Var) and _thread(stage, leaf) is None:
                region = bounds.regions[stage].get(leaf)
                first = IntImm(kind_of(leaf.var), 0) if region is None else region.min
                found[var] = binary("sub", leaf.var, first)
    return found
