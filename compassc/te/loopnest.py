"""The loop nest of a schedule: stages and bounds become statements of the kernel IR.

Stages on the outermost level follow one another; a stage that is computed at a loop stands at the beginning of that
loop. Where a split does not divide, and where a region reaches beyond what a stage is declared for, the store is
guarded. A reduction begins with its identity, before the outermost loop that it reduces over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, pointer_type
from compassc.ir.exprs import Binary, Buffer, Expr, IntImm, Var
from compassc.ir.stmts import Body, Stmt
from compassc.te.axes import IterVar
from compassc.te.bounds import Bounds
from compassc.te.errors import LowerError
from compassc.te.machine import Machine
from compassc.te.nodes import Reduce, TensorRead, rewrite
from compassc.te.schedule.relations import predicates, root_values
from compassc.te.schedule.schedule import Schedule
from compassc.te.schedule.stage import Annotation, Stage, loops_around
from compassc.te.tensor import Operation, Tensor
from compassc.te.values import Value, binary

_ZERO, _ONE = IntImm(INT32, 0), IntImm(INT32, 1)


@dataclass(frozen=True)
class Place:
    """Where the elements of a tensor are: a buffer, and the index in it of the tensor's element 0 (negated minimum)."""

    buffer: Buffer
    start: tuple[Expr, ...]


@dataclass
class LoopNest:
    """The result: allocations, and the statements of each stage of the outermost level."""

    allocations: list[Stmt] = field(default_factory=list)
    roots: list[tuple[Stage, Body]] = field(default_factory=list)
    double_buffered: list[Var] = field(default_factory=list)


def loop_nest(schedule: Schedule, bounds: Bounds, parameters: dict[Tensor, Buffer], machine: Machine) -> LoopNest:
    """The statements of a schedule. `parameters`: the buffers of tensors that the caller gives or gets."""
    return _Nests(schedule, bounds, parameters, machine).run()


class _Nests:
    def __init__(self, schedule: Schedule, bounds: Bounds, parameters: dict[Tensor, Buffer], machine: Machine) -> None:
        self.schedule, self.bounds, self.machine = schedule, bounds, machine
        self.made = LoopNest()
        self.inner: dict[Stage, list[Stmt]] = defaultdict(list)
        """The memory that a stage has for a turn of the loop that it is computed at."""
        self.places: dict[tuple[Operation, int], Place] = {
            (t.op, t.value_index): Place(b, ()) for t, b in parameters.items()
        }
        self.computed = [s for s in schedule.stages if s in bounds.regions]
        self.bound = any(machine.shares(n.thread) for s in self.computed for n in _notes(s))

    def run(self) -> LoopNest:
        for stage in self.computed:
            self._check_threads(stage)
            self._allocate(stage)
        for stage in self.computed:
            if stage.attached is None:
                self.made.roots.append((stage, _Nest(self, stage).statements()))
        return self.made

    def _check_threads(self, stage: Stage) -> None:
        """LowerError for an attached stage that is shared out itself, where threads do not compute stages together."""
        shared = [a.name for a in stage.leaf_iter_vars if self._shared_out(stage, a)]
        if shared and stage.attached is not None and not self.machine.together:
            raise LowerError(
                f"'{stage.label}' is computed at a loop of '{stage.attached[0].label}' and shares its own loop "
                f"'{shared[0]}' out over threads, which is not supported for this target",
                "bind a loop of the stage that it is computed in, or compute it on the outermost level",
            )

    # -- memory

    def _allocate(self, stage: Stage) -> None:
        regions = self.bounds.regions[stage]
        for tensor in stage.op.outputs:
            if (stage.op, tensor.value_index) in self.places:
                if stage.attached is not None:
                    raise LowerError(f"'{stage.label}' is a parameter, so it is computed on the outermost level")
                continue
            shape, start = [], []
            for axis in stage.axis:
                region = regions[axis]
                if not isinstance(region.extent, IntImm):
                    raise LowerError(
                        f"the memory of '{stage.label}' has no constant size: axis '{axis.name}' has extent "
                        f"{Value(region.extent)}",
                        "compute it at an inner loop, or make it a parameter of the kernel",
                    )
                shape.append(IntImm(INT32, max(region.extent.value, 1)))
                start.append(region.min)
            inside = stage.attached is not None and self._in_threads(stage)
            scope = self.machine.scope(stage, inside, self.bound)
            dtype = self.machine.storage_type(stage.label, tensor.dtype)
            data = Var(tensor.name.replace(".", "_").replace("#", "_"), pointer_type(dtype, scope))
            buffer = Buffer(data, dtype, tuple(shape) or (_ONE,))
            self.places[stage.op, tensor.value_index] = Place(buffer, tuple(start))
            outside = stage.attached is None or scope == "shared" or stage.double_buffered
            (self.made.allocations if outside else self.inner[stage]).append(S.Alloc(buffer))
            if stage.double_buffered:
                self.made.double_buffered.append(data)

    def _shared_out(self, stage: Stage, axis: IterVar) -> bool:
        return self.machine.shares(stage.annotations.get(axis, Annotation()).thread)

    def _in_threads(self, stage: Stage) -> bool:
        """Whether threads compute a stage each for itself: inside of a loop over them, and not sharing its own loops."""
        if any(self._shared_out(stage, axis) for axis in stage.leaf_iter_vars):
            return False
        return any(self._shared_out(parent, leaf) for parent, leaf in loops_around(stage))

    def read(self, e: Expr) -> Expr:
        """An expression with elements of tensors as loads."""
        return rewrite(e, self._load)

    def _load(self, e: Expr) -> Expr | None:
        if not isinstance(e, TensorRead):
            return None
        place = self.places.get((e.tensor.op, e.tensor.value_index))
        if place is None:
            raise LowerError(f"'{e.tensor.name}' is read but not among the arguments", "add it to the arguments")
        return E.Load(place.buffer, _indices(place, [self.read(i) for i in e.indices]))


def _notes(stage: Stage) -> list[Annotation]:
    return [stage.annotations[a] for a in stage.leaf_iter_vars if a in stage.annotations]


def _indices(place: Place, indices: Sequence[Expr]) -> tuple[Expr, ...]:
    if not indices:
        return (_ZERO,)
    if not place.start:
        return tuple(indices)
    return tuple(binary("sub", Value(i), Value(start)).expr for i, start in zip(indices, place.start))


class _Nest:
    """The loops of one stage and of what is computed inside of them."""

    def __init__(self, nests: _Nests, stage: Stage) -> None:
        self.nests, self.stage = nests, stage
        self.extents = nests.bounds.extents[stage]
        self.regions = nests.bounds.regions[stage]
        leaves = stage.leaf_iter_vars
        self.first_reduction = next((i for i, a in enumerate(leaves) if a.is_reduction), len(leaves))
        self.loops = nests.bounds.loops[stage]

    def statements(self) -> Body:
        return tuple(self._level(0))

    def _level(self, depth: int) -> list[Stmt]:
        leaves = self.stage.leaf_iter_vars
        before = self._identity() if self._reduces() and depth == self.first_reduction else []
        if depth == len(leaves):
            return [*before, *self._update()]
        leaf = leaves[depth]
        inner = [*self._attached(leaf), *self._level(depth + 1)]
        return [*before, *self._loop(leaf, self.loops[leaf], tuple(inner))]

    def _reduces(self) -> bool:
        return isinstance(self.stage.body[0], Reduce)

    def _attached(self, leaf: IterVar) -> list[Stmt]:
        found: list[Stmt] = []
        for other in self.nests.computed:
            if other.attached is not None and other.attached[0] is self.stage and other.attached[1] is leaf:
                found += [*self.nests.inner[other], *_Nest(self.nests, other).statements()]
        return found

    def _loop(self, leaf: IterVar, var: Expr, body: Body) -> list[Stmt]:
        """A loop around statements; nothing around them where it has one turn."""
        note = self.stage.annotations.get(leaf, Annotation())
        extent = self.extents[leaf]
        if note.loop == "vectorize" and not isinstance(extent, IntImm):
            raise LowerError(
                f"vectorize of '{self.stage.label}': '{leaf.name}' has extent {Value(extent)}, no constant"
            )
        if not isinstance(var, Var):
            return list(body)
        if note.thread is not None:
            return [self._threads(note.thread, var, extent, body)]
        return [S.For(var, self.nests.machine.loops.get(note.loop, "serial"), _ZERO, extent, _ONE, body)]

    def _threads(self, thread: IterVar, var: Var, extent: Expr, body: Body) -> Stmt:
        """A loop over threads."""
        declared = thread.dom.extent if thread.dom is not None else extent
        if isinstance(declared, IntImm) and isinstance(extent, IntImm) and declared.value != extent.value:
            raise LowerError(
                f"{thread.tag} has {declared.value} threads, '{self.stage.label}' has {extent.value} turns"
            )
        return self.nests.machine.threads(thread.tag, var, extent, body)

    # -- stores

    def _values(self, loops: dict[IterVar, Expr]) -> dict[IterVar, Expr]:
        """The value of each axis of the operation in terms of the loops."""
        counted = root_values(self.stage, self.extents, loops, counted=True)
        return {
            axis: binary("add", Value(counted[axis]), Value(self.regions[axis].min)).expr
            for axis in (*self.stage.axis, *self.stage.reduce_axis)
            if axis in counted
        }

    def _guarded(self, loops: dict[IterVar, Expr], reductions: bool, statements: list[Stmt], *more: Expr) -> list[Stmt]:
        """Statements under the conditions of their loops."""
        conditions = [
            c for axis, c in predicates(self.stage, self.extents, loops) if reductions or not axis.is_reduction
        ]
        values = self._values(loops)
        for axis in self.stage.axis:
            if not self.regions[axis].whole and axis.dom is not None:
                end = binary("add", Value(axis.dom.min), Value(axis.dom.extent)).expr
                conditions += [Binary("le", axis.dom.min, values[axis]), Binary("lt", values[axis], end)]
        conditions += [c for c in more if not (isinstance(c, IntImm) and c.value)]
        made: Body = tuple(statements)
        for condition in reversed(conditions):
            made = (S.If(condition, made, ()),)
        return list(made)

    def _store(self, index: int, values: dict[IterVar, Expr], value: Expr) -> Stmt:
        place = self.nests.places[self.stage.op, index]
        at = _indices(place, [values[a] for a in self.stage.axis])
        return S.Store(place.buffer, at, value, None)

    def _target(self, index: int, values: dict[IterVar, Expr]) -> Expr:
        place = self.nests.places[self.stage.op, index]
        return E.Load(place.buffer, _indices(place, [values[a] for a in self.stage.axis]))

    def _expr(self, e: Expr, values: dict[IterVar, Expr]) -> Expr:
        mapping: dict[Expr, Expr] = {axis.as_expr(): value for axis, value in values.items()}
        return self.nests.read(rewrite(e, mapping.get))

    def _update(self) -> list[Stmt]:
        """The statements of the innermost loop."""
        values = self._values(self.loops)
        if not self._reduces():
            stores = [self._store(i, values, self._expr(e, values)) for i, e in enumerate(self.stage.body)]
            return self._guarded(self.loops, True, stores)
        first = self.stage.body[0]
        assert isinstance(first, Reduce)
        sources = [self._expr(e, values) for e in first.sources]
        old = [self._target(i, values) for i in range(len(sources))]
        joined = first.combiner.combine(old, sources)
        condition = self._expr(first.condition, values)
        if len(joined) == 1:
            return self._guarded(self.loops, True, [self._store(0, values, joined[0])], condition)
        temporaries = [
            Var(f"v_{self.stage.op.output(i).name.replace('.', '_')}", e.dtype) for i, e in enumerate(joined)
        ]
        statements: list[Stmt] = [S.Let(var, e) for var, e in zip(temporaries, joined)]
        statements += [self._store(i, values, var) for i, var in enumerate(temporaries)]
        return self._guarded(self.loops, True, statements, condition)

    def _identity(self) -> list[Stmt]:
        """The start values, for all elements that the loops inside of here reduce."""
        loops = dict(self.loops)
        inner = [a for a in self.stage.leaf_iter_vars[self.first_reduction :] if not a.is_reduction]
        for axis in inner:
            var = self.loops[axis]
            if isinstance(var, Var):
                loops[axis] = Var(f"{var.name}_init", var.dtype, var.nonneg)
        values = self._values({a: v for a, v in loops.items() if not a.is_reduction})
        first = self.stage.body[0]
        assert isinstance(first, Reduce)
        start = [self._expr(e, values) for e in (first.init or first.combiner.identity)]
        spatial = {a: v for a, v in loops.items() if not a.is_reduction}
        stores = [self._store(i, values, e) for i, e in enumerate(start)]
        made = tuple(self._guarded(spatial, False, stores))
        for axis in reversed(inner):
            made = tuple(self._loop(axis, loops[axis], made))
        return list(made)
