"""Bound inference: how much of each stage has to be computed where it is computed.

Stages are looked at from the outputs back. What is computed on the outermost level is computed whole; what is computed
at a loop of another stage, as far as the stages inside of that loop read it: the variables of outer loops stay, those
of inner loops take all their values. A region may be larger than needed, never smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compass_core.dataclass import dataclass
from compassc.analysis.arith import Arith
from compassc.analysis.simplify import Simplifier
from compassc.analysis.structure import Interner
from compassc.ir import exprs as E
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Expr, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.operators import binary, kind_of
from compassc.ir.tensor_exprs import reads
from compassc.te.errors import LowerError
from compassc.te.schedule.annotation import Annotation
from compassc.te.schedule.loops import full_extent, is_tec, loops_around
from compassc.te.schedule.relations import leaf_extents, root_values
from compassc.te.schedule.schedule import Schedule
from compassc.te.schedule.stage import Stage
from compassc.te.tensor import PlaceholderOp, tensor_of

_LARGEST = 1 << 28
"""Extents that are not constant are bounded by a constant below this, or not at all."""


@dataclass(frozen=True)
class Region:
    """A range of one axis: from `min` on, `extent` of them. `whole`: the declared range."""

    min: Expr
    extent: Expr
    whole: bool

    def __str__(self) -> str:
        return f"[{self.min}, {binary('add', self.min, self.extent)})"


class Bounds:
    """What `infer_bounds` found: the region of each axis of each stage that computes, and the extents of its loops.

    `loops`: the variable of each loop, which counts from 0; 0 itself for a loop of one turn.
    """

    def __init__(self) -> None:
        self.loops: dict[Stage, dict[IterVar, Expr]] = {}
        self.regions: dict[Stage, dict[IterVar, Region]] = {}
        self.extents: dict[Stage, dict[IterVar, Expr]] = {}

    def __str__(self) -> str:
        lines = []
        for stage, regions in self.regions.items():
            axes = ", ".join(f"{axis.name} in {region}" for axis, region in regions.items())
            loops = ", ".join(f"{a.name}: {self.extents[stage][a]}" for a in stage.leaf_iter_vars)
            lines.append(f"{stage.label}: {axes or 'a scalar'}; loops {loops or 'none'}")
        return "\n".join(lines)


class Unbounded(Exception):
    """An index whose values are not known before the kernel runs."""


Interval = tuple[Expr, Expr]


def infer_bounds(schedule: Schedule, kind: type[Inference] | None = None) -> Bounds:
    """The regions and extents of a schedule without inlined stages (see `normalised`). `kind`: other rules of what is needed."""
    found = Bounds()
    inference = (kind or Inference)(schedule, found)
    for stage in reversed(schedule.stages):
        if isinstance(stage.origin_op, PlaceholderOp):
            continue
        regions = inference.regions(stage)
        found.regions[stage] = regions
        roots = {axis: region.extent for axis, region in regions.items()}
        extents = found.extents[stage] = leaf_extents(stage, roots)
        found.loops[stage] = {leaf: inference.counter(stage, leaf, extents[leaf]) for leaf in stage.leaf_iter_vars}
    return found


class Inference:
    """How much is needed of each stage, from its readers."""

    def __init__(self, schedule: Schedule, found: Bounds) -> None:
        self.schedule, self.found = schedule, found
        self._known: dict[Stage, Arith] = {}

    def regions(self, stage: Stage) -> dict[IterVar, Region]:
        """The region of each axis of a stage whose readers are known."""
        declared = {a: Region(_dom_min(a), full_extent(a), True) for a in (*stage.axis, *stage.reduce_axis)}
        if stage.attached is None and not self.by_need(stage):
            return declared
        needed: list[list[Interval] | None] = [None] * len(stage.axis)
        for reader in self.schedule.readers(stage):
            self._check_path(stage, reader)
            if not stage.axis:
                continue  # a scalar, or statements that give all of their tensors
            intervals = self._intervals(stage, reader)
            if any(t.op is stage.origin_op for t in reader.inputs):
                whole = [(_dom_min(a), _minus_one(_dom_min(a), full_extent(a))) for a in stage.axis]
                needed = [(known or []) + [span] for known, span in zip(needed, whole)]
            for e in (x for body in reader.body for x in reads(body) if tensor_of(x).op is stage.origin_op):
                for i, index in enumerate(e.indices):
                    needed[i] = (needed[i] or []) + [self._index(stage, index, intervals, i)]
        facts = self.facts(stage)
        for axis, spans in zip(stage.axis, needed):
            if spans:
                declared[axis] = union(spans, facts)
        return declared

    def by_need(self, stage: Stage) -> bool:
        """Whether a stage of the outermost level is computed as far as it is read: who else reads it is not known here."""
        return False

    def counter(self, stage: Stage, leaf: IterVar, extent: Expr) -> Expr:
        """The variable of a loop: another one than that of the axis, which need not begin at 0."""
        axis = leaf.var
        if isinstance(extent, IntImm) and extent.value == 1:
            return IntImm(kind_of(axis), 0)
        return Var(axis.name, axis.dtype, True)

    def _index(self, stage: Stage, index: Expr, intervals: Mapping[Var, Interval], dim: int) -> Interval:
        try:
            return interval(index, lambda var: intervals.get(var))
        except Unbounded:
            axis = stage.axis[dim]
            low = _dom_min(axis)
            return low, _minus_one(low, full_extent(axis))

    def _intervals(self, stage: Stage, reader: Stage) -> dict[Var, Interval]:
        """The values that the axes of a reader take while the loops outside of the place of `stage` stand still."""
        fixed = self.fixed(stage)
        intervals: dict[Var, Interval] = {}
        level: Stage | None = reader
        while level is not None:
            extents = self.found.extents[level]
            regions = self.found.regions[level]
            loops = self.found.loops[level]
            for leaf, var in loops.items():
                if isinstance(var, Var) and var not in fixed:
                    intervals[var] = full(extents[leaf])
            counted = self.counted(level, intervals)
            for axis in (*level.axis, *level.reduce_axis):
                start, whole = regions[axis].min, regions[axis].extent
                low, high = counted[axis]
                if isinstance(high, IntImm) and isinstance(whole, IntImm) and high.value >= whole.value > 0:
                    high = IntImm(kind_of(high), whole.value - 1)  # turns beyond the end do nothing
                intervals[axis.var] = binary("add", low, start), binary("add", high, start)
            level = level.attached[0] if level.attached is not None else None
        return _closed(intervals, fixed)

    def counted(self, level: Stage, intervals: Mapping[Var, Interval]) -> dict[IterVar, Interval]:
        """The values of the axes of a stage, counted from 0, by those of its loops."""
        values = root_values(level, self.found.extents[level], self.found.loops[level], counted=True)
        made: dict[IterVar, Interval] = {}
        for axis in (*level.axis, *level.reduce_axis):
            try:
                made[axis] = interval(values[axis], intervals.get)
            except Unbounded:  # a part of a fused loop whose extent is not known
                made[axis] = full(self.found.regions[level][axis].extent)
        return made

    def facts(self, stage: Stage) -> Arith:
        """The ranges of the loops around a stage; the same for all that are computed in one other stage."""
        level = stage.attached
        if level is None:
            return Arith()
        found = self._known.get(level[0])
        if found is not None:
            return found
        facts = self._known[level[0]] = Arith()
        while level is not None:
            parent = level[0]
            for leaf in parent.leaf_iter_vars:
                extent = self.found.extents[parent][leaf]
                var = self.found.loops[parent][leaf]
                if isinstance(var, Var):
                    facts.bind_loop(var, IntImm(INT32, 0), extent, IntImm(INT32, 1))
            level = parent.attached
        return facts

    def _check_path(self, stage: Stage, reader: Stage) -> None:
        """LowerError when a reader is not computed inside of the loop that `stage` is computed at."""
        if stage.attached is None:
            return
        parent, axis = stage.attached
        depth = self.depth(stage, parent, axis)
        level, at = reader, len(reader.leaf_iter_vars)
        while level is not parent:
            if level.attached is None:
                raise LowerError(
                    f"'{stage.label}' is computed at '{axis.name}' of '{parent.label}', but '{reader.label}' reads it too, "
                    "outside of that loop",
                    f"compute '{reader.label}' inside of that loop, or '{stage.label}' outside of both",
                )
            at = self.depth(level, *level.attached) + 1
            level = level.attached[0]
        if at <= depth:
            raise LowerError(
                f"'{stage.label}' is computed at '{axis.name}' of '{parent.label}', inside of the loop that "
                f"'{reader.label}' is computed at, which reads it"
            )

    def depth(self, stage: Stage, parent: Stage, axis: IterVar) -> int:
        """The place of the loop that a stage is computed at."""
        for place, leaf in enumerate(parent.leaf_iter_vars):
            if leaf is axis:
                return place
        raise LowerError(f"'{stage.label}' is computed at '{axis.name}', which is no loop of '{parent.label}' now")

    def fixed(self, stage: Stage) -> set[Var]:
        """The variables of the loops that stand still at the place of a stage."""
        together = _computed_together(stage)
        assert stage.attached is not None
        self.depth(stage, *stage.attached)
        fixed: set[Var] = set()
        for parent, leaf in loops_around(stage):
            var = self.found.loops[parent][leaf]
            if isinstance(var, Var) and not (together and is_tec(parent.annotations.get(leaf, Annotation()).thread)):
                fixed.add(var)
        return fixed


def _computed_together(stage: Stage) -> bool:
    """Whether threads compute what all of them need, in memory that they share: where the user says so, and where a stage
    without a memory has loops that are shared out over them."""
    notes = (stage.annotations.get(leaf) for leaf in stage.leaf_iter_vars)
    shared_out = any(note is not None and is_tec(note.thread) for note in notes)
    return stage.scope == "shared" or (not stage.scope and shared_out)


def _dom_min(axis: IterVar) -> Expr:
    assert axis.dom is not None
    return axis.dom.min


def _closed(intervals: dict[Var, Interval], fixed: set[Var]) -> dict[Var, Interval]:
    """The intervals with the variables in their ends replaced, until only fixed ones are left."""
    same = Interner().same

    def of(var: Var) -> Interval | None:
        return None if var in fixed else intervals.get(var)

    for _ in range(16):
        changed = False
        for var, (low, high) in list(intervals.items()):
            new = interval(low, of)[0], interval(high, of)[1]
            if not same(new[0], low) or not same(new[1], high):
                intervals[var] = new
                changed = True
        if not changed:
            break
    return intervals


def full(extent: Expr) -> Interval:
    """The values of what counts from 0."""
    zero = IntImm(kind_of(extent), 0)
    return zero, _minus_one(zero, extent)


def _minus_one(low: Expr, extent: Expr) -> Expr:
    return binary("sub", binary("add", low, extent), IntImm(kind_of(extent), 1))


def union(spans: list[Interval], facts: Arith) -> Region:
    """The region that holds all intervals; its extent is constant where that can be known."""
    simplify = Simplifier(facts).expr
    if all(a is b and a is spans[0][0] for a, b in spans):  # one index
        return Region(simplify(spans[0][0]), IntImm(kind_of(spans[0][0]), 1), False)
    low, high = (simplify(e) for e in spans[0])
    for a, b in ((simplify(a), simplify(b)) for a, b in spans[1:]):
        low = a if _at_most(a, low, facts) else low if _at_most(low, a, facts) else E.Binary("min", low, a)
        high = b if _at_most(high, b, facts) else high if _at_most(b, high, facts) else E.Binary("max", high, b)
    extent = simplify(binary("add", binary("sub", high, low), IntImm(kind_of(low), 1)))
    if not isinstance(extent, IntImm):
        most = facts.difference(high, low)[1] + 1
        if most < _LARGEST:
            extent = IntImm(kind_of(low), most)
    return Region(low, extent, False)


def _at_most(a: Expr, b: Expr, facts: Arith) -> bool:
    """Whether an index of a tensor is never larger than another one. Signed ones do not wrap round: `i <= i + 2` for any `i`."""
    if facts.compare("le", a, b):
        return True
    if kind_of(a).is_uint or kind_of(b).is_uint:  # `i - 1` is `i + 4294967295`
        return False
    apart = facts.linear(b).add(facts.linear(a), -1)
    return not apart.terms and apart.const >= 0


# ----------------------------------------------------------------------------------------------------------- intervals


def interval(e: Expr, of: Callable[[Var], Interval | None]) -> Interval:
    """The least and the largest value of an index over the intervals of its variables, as expressions of the others.

    `of` gives the interval of a variable, None for one that stands still. Unbounded for what is known only when the
    kernel runs.
    """
    if isinstance(e, Var):
        found = of(e)
        return (e, e) if found is None else found
    if isinstance(e, IntImm):
        return e, e
    if isinstance(e, E.Cast) and e.dtype.is_integer:
        low, high = interval(e.value, of)
        return E.Cast(e.dtype, low), E.Cast(e.dtype, high)
    if isinstance(e, E.Select):
        (a, b), (c, d) = interval(e.true_value, of), interval(e.false_value, of)
        return binary("min", a, c), binary("max", b, d)
    if isinstance(e, E.Binary):
        return _binary_interval(e, interval(e.a, of), interval(e.b, of))
    raise Unbounded


def _binary_interval(e: E.Binary, a: Interval, b: Interval) -> Interval:
    if a[0] is a[1] and b[0] is b[1]:
        made = binary(e.op, a[0], b[0])
        return made, made
    if e.op in ("add", "min", "max"):
        return binary(e.op, a[0], b[0]), binary(e.op, a[1], b[1])
    if e.op == "sub":
        return binary("sub", a[0], b[1]), binary("sub", a[1], b[0])
    if e.op == "mul" and isinstance(a[0], IntImm) and a[0] is a[1]:
        a, b = b, a
    by = b[0].value if isinstance(b[0], IntImm) and b[0] is b[1] else None
    if e.op == "mul" and by is not None:
        low, high = binary("mul", a[0], b[0]), binary("mul", a[1], b[0])
        return (low, high) if by >= 0 else (high, low)
    if e.op in ("floordiv", "div") and by is not None and by > 0:
        return binary(e.op, a[0], b[0]), binary(e.op, a[1], b[0])
    if e.op == "floormod" and by is not None and by > 0:
        return IntImm(kind_of(e), 0), IntImm(kind_of(e), by - 1)
    raise Unbounded
