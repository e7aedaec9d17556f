"""The loop nest of a schedule: stages and bounds become statements of the kernel IR.

Stages on the outermost level follow one another; a stage that is computed at a loop stands at the beginning of that
loop. Where a split does not divide, and where a region reaches beyond what a stage is declared for, the store is
guarded. A reduction begins with its identity, before the outermost loop that it reduces over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from compass_core.dataclass import dataclass
from compassc.analysis.conditions import nested
from compassc.analysis.structure import variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, pointer_type
from compassc.ir.exprs import Binary, Buffer, Expr, IntImm, Var
from compassc.ir.iter_vars import IterKind, IterVar, Range
from compassc.ir.operators import binary
from compassc.ir.stmts import Body, Stmt
from compassc.ir.tensor_exprs import ProducerLoad, Reduce
from compassc.ir.tensor_stmts import reduced, stored
from compassc.ir.visit import rewrite, substitute
from compassc.te.bound_statements import Parts, bound
from compassc.te.bound_statements import Target as Part
from compassc.te.bounds import Bounds, Region
from compassc.te.buffers import View, aligned
from compassc.te.errors import LowerError
from compassc.te.hybrid.op import HybridOp, scheduled
from compassc.te.machine import Machine, Use
from compassc.te.opaque import ExternOp, Kernels, ScanOp
from compassc.te.parameters import why_not_whole
from compassc.te.pragmas import applied
from compassc.te.rolling_buffers import circular_of
from compassc.te.rolling_buffers import conditions as rolling_conditions
from compassc.te.schedule.annotation import Annotation
from compassc.te.schedule.loops import loops_around
from compassc.te.schedule.relations import predicates, root_values, roots_of
from compassc.te.schedule.schedule import Schedule
from compassc.te.schedule.stage import Stage
from compassc.te.tensor import Operation, Tensor, tensor_of
from compassc.te.tensorised import Place, Tensorised, begin_in, indices_in

if TYPE_CHECKING:
    from compassc.language.functions import PyPrimFunc

_ZERO, _ONE = IntImm(INT32, 0), IntImm(INT32, 1)
_UNTOLD = {"vthread": "vthread_x"}
"""Kinds of loops of threads that are named without a dimension."""


@dataclass
class LoopNest:
    """The result: allocations, and the statements of each stage of the outermost level."""

    allocations: list[Stmt] = field(default_factory=list)
    roots: list[Body] = field(default_factory=list)
    double_buffered: list[Var] = field(default_factory=list)
    kernels: list[PyPrimFunc] = field(default_factory=list)
    """What statements call."""


def loop_nest(schedule: Schedule, bounds: Bounds, parameters: dict[Tensor, Buffer], machine: Machine) -> LoopNest:
    """The statements of a schedule. `parameters`: the buffers of tensors that the caller gives or gets."""
    return Nests(schedule, bounds, parameters, machine).run()


class Nests:
    """The stages of a schedule as statements on buffers."""

    def __init__(self, schedule: Schedule, bounds: Bounds, parameters: dict[Tensor, Buffer], machine: Machine) -> None:
        self.schedule, self.bounds, self.machine = schedule, bounds, machine
        self.made = LoopNest()
        self.parts: set[Operation] = set()
        """The operations whose memory is that of a scan."""
        self.inner: dict[Stage, list[Stmt]] = defaultdict(list)
        """The memory that a stage has for a turn of the loop that it is computed at."""
        self.places: dict[tuple[Operation, int], Place] = {
            (t.op, t.value_index): Place(b, ()) for t, b in parameters.items()
        }
        self.computed = [s for s in schedule.stages if s in bounds.regions]
        self.loops = {v for loops in bounds.loops.values() for v in loops.values() if isinstance(v, Var)}
        self.bound = any(map(machine.threads, self.computed))

    def run(self) -> LoopNest:
        for stage in self.computed:
            if isinstance(stage.origin_op, ScanOp):
                self._allocate(stage)
                self._share(stage.origin_op)
        for stage in self.computed:
            self._check_threads(stage)
            if stage.origin_op not in self.parts:
                self._allocate(stage)
        for stage in self.computed:
            self._check_reads(stage)
        for stage in self.computed:
            if stage.attached is None:
                self.made.roots.append(self.nest(stage).statements())
        return self.made

    def _check_threads(self, stage: Stage) -> None:
        """LowerError for an attached stage that is shared out itself, where threads do not compute stages together."""
        shared = [a.name for a in self.machine.threads(stage)]
        if shared and stage.attached is not None and not self.machine.together:
            raise LowerError(
                f"'{stage.label}' is computed at a loop of '{stage.attached[0].label}' and shares its own loop "
                f"'{shared[0]}' out over threads, which is not supported for this target",
                "bind a loop of the stage that it is computed in, or compute it on the outermost level",
            )

    def _check_reads(self, stage: Stage) -> None:
        """LowerError where TECs compute a stage together from what lies in the memory of one."""
        shared = self.machine.threads(stage)
        if not shared or not self.machine.together or self.machine.everywhere:
            return
        for other in self.computed:
            scopes = {self.place(t).buffer.scope for t in other.origin_op.outputs}
            if stage not in self.schedule.readers(other) or not scopes & {"lsram", "private"}:
                continue
            if not any(parent is stage and leaf in shared for parent, leaf in loops_around(other)):
                raise LowerError(
                    f"'{stage.label}' is computed by all TECs together, but '{other.label}', which it reads, lies in the "
                    "memory of one",
                    "set_scope('shared'), or compute it inside of the loop that is shared out",
                )

    def nest(self, stage: Stage) -> Nest:
        """The loops of one stage."""
        return Nest(self, stage)

    def on_memory(self, body: Body, parts: Parts, kernels: Kernels, what: str) -> list[Stmt]:
        """Statements of the user's on the memory of their tensors."""
        self.made.kernels += kernels.values()
        return bound(body, parts, kernels, what)

    # -- memory

    def _share(self, op: ScanOp) -> None:
        """The parts of a scan have its memory."""
        for group in (op.init, op.update, op.state_placeholder):
            for i, t in enumerate(group):
                if (t.op, t.value_index) in self.places:
                    raise LowerError(f"'{t.name}' is a part of the scan '{op.name}' and no parameter", "copy it")
                self.places[t.op, t.value_index] = self.places[op, i]
                self.parts.add(t.op)

    def _allocate(self, stage: Stage) -> None:
        regions = self.bounds.regions[stage]
        for tensor in stage.origin_op.outputs:
            if (stage.origin_op, tensor.value_index) in self.places:
                if stage.origin_op not in self.parts:
                    self._check_parameter(stage)
                continue
            shape, start = [], []
            going = circular_of(stage, self.bounds) if stage.rolling else None
            if isinstance(stage.origin_op, (ScanOp, ExternOp)):
                regions, axes = _whole(tensor)
            else:
                axes = stage.axis
            scope = self.machine.scope(stage, self._use(stage))
            for axis in axes:
                shape.append(self._extent(stage, axis, regions[axis].extent, scope))
                start.append(regions[axis].min)
            dtype = self.machine.storage_type(stage.label, tensor.dtype)
            data = Var(tensor.name.replace(".", "_").replace("#", "_"), pointer_type(dtype, scope))
            buffer = Buffer(data, dtype, aligned(stage.label, shape, stage.alignments) or (_ONE,))
            self.places[stage.origin_op, tensor.value_index] = Place(buffer, tuple(start), going)
            outside = stage.attached is None or scope == "shared" or stage.double_buffered or stage.rolling
            (self.made.allocations if outside else self.inner[stage]).append(S.Alloc(buffer))
            if stage.double_buffered:
                self.made.double_buffered.append(data)

    def _check_parameter(self, stage: Stage) -> None:
        """LowerError for a parameter that is computed at a loop whose turns do not compute all of it, or some of it at the
        same time."""
        asked = {"set_scope": stage.scope not in ("", "global"), "storage_align": stage.alignments,
                 "double_buffer": stage.double_buffered, "rolling_buffer": stage.rolling}  # fmt: skip
        for step in (name for name, wanted in asked.items() if wanted):
            raise LowerError(
                f"{step} of '{stage.label}': it is a parameter, whose memory is given",
                "take the step on a copy of it (cache_write)",
            )
        if stage.attached is None:
            return
        own = [a.name for a in self.machine.threads(stage)]
        if own:
            reason = f"shares its own loop '{own[0]}' out over threads there"
        else:
            what = why_not_whole(
                stage, self.bounds, lambda note: note.loop == "parallel" or self.machine.shares(note.thread)
            )
            reason = f"is a parameter, of which every element is computed once: {what}" if what else ""
        if reason:
            raise LowerError(
                f"'{stage.label}' is computed at '{stage.attached[1].name}' of '{stage.attached[0].label}' and {reason}",
                "compute it on the outermost level, and what is read at the loop in a stage of its own (cache_write)",
            )

    def _extent(self, stage: Stage, axis: IterVar, extent: Expr, scope: str) -> Expr:
        """The extent of memory along one axis. LowerError where it is not a number, and memory of that scope has to be."""
        if isinstance(extent, IntImm):
            return IntImm(INT32, max(extent.value, 1))
        if scope in self.machine.open_memory and not variables(extent) & self.loops:
            return extent
        raise LowerError(
            f"the memory of '{stage.label}' has no constant size: axis '{axis.name}' has extent {extent}",
            "compute it at an inner loop, or make it a parameter of the kernel",
        )

    def _use(self, stage: Stage) -> Use:
        """Who uses the memory of a stage: threads each for itself, inside of a loop over them, or those who share its loops."""
        apart = [thread.thread_tag for thread in self.machine.threads(stage).values()]
        inside = any(leaf in self.machine.threads(parent) for parent, leaf in loops_around(stage))
        return Use(inside and not apart, self.bound, stage.attached is None, apart)

    def read(self, e: Expr) -> Expr:
        """An expression with elements of tensors as loads."""
        return rewrite(e, self._load)

    def _load(self, e: Expr) -> Expr | None:
        if not isinstance(e, ProducerLoad):
            return None
        place = self.place(tensor_of(e))
        return E.BufferLoad(place.buffer, indices_in(place, [self.read(i) for i in e.indices]))

    def place(self, tensor: Tensor) -> Place:
        """Where a tensor is."""
        place = self.places.get((tensor.op, tensor.value_index))
        if place is None:
            raise LowerError(f"'{tensor.name}' is read but not among the arguments", "add it to the arguments")
        return place


def _whole(tensor: Tensor) -> tuple[dict[IterVar, Region], tuple[IterVar, ...]]:
    """Regions of all dimensions of a tensor."""
    axes = tuple(IterVar(Range(d), f"dim{i}", IterKind.DATA_PARALLEL) for i, d in enumerate(tensor.shape))
    return {a: Region(_ZERO, d, True) for a, d in zip(axes, tensor.shape)}, axes


class Nest:
    """The loops of one stage and of what is computed inside of them."""

    def __init__(self, nests: Nests, stage: Stage) -> None:
        self.nests, self.stage = nests, stage
        self.extents = nests.bounds.extents[stage]
        self.regions = nests.bounds.regions[stage]
        leaves = stage.leaf_iter_vars
        self.first_reduction = next((i for i, a in enumerate(leaves) if a.is_reduction), len(leaves))
        self.mixed = stage.mixed
        self.loops = nests.bounds.loops[stage]
        self._resolve_ranges()
        notes = [stage.annotations.get(a) for a in leaves]
        self.tensorised = next((i for i, n in enumerate(notes) if n is not None and n.intrin is not None), None)

    def _resolve_ranges(self) -> None:
        """Ranges that depend on another axis (`te.reduce_axis((0, i))`) by the loops of that axis."""
        own = {a.as_expr() for a in (*self.stage.axis, *self.stage.reduce_axis)}
        if not any(set(variables(e)) & own for e in self.extents.values()):
            return
        values: dict[Var, Expr] = {a.as_expr(): v for a, v in self.values(self.loops).items()}
        self.extents = {a: substitute(e, values) for a, e in self.extents.items()}
        self.regions = {
            a: Region(substitute(r.min, values), substitute(r.extent, values), r.whole) for a, r in self.regions.items()
        }

    def statements(self) -> Body:
        if isinstance(self.stage.origin_op, ExternOp):
            return tuple(self._extern(self.stage.origin_op))
        return tuple(self._level(0))

    def _extern(self, op: ExternOp) -> list[Stmt]:
        """The statements of the user's on the buffers of the tensors."""
        parts = {}
        given = [*zip(op.input_placeholders, self.stage.inputs), *zip(op.output_placeholders, op.outputs)]
        for buffer, tensor in given:
            place = self.nests.place(tensor)
            begin = begin_in(f"'{self.stage.label}'", place, [_ZERO] * len(buffer.shape))
            parts[buffer.data] = View(buffer), Part(place.buffer, begin, tuple(range(len(buffer.shape))))
        body = scheduled(self.stage, op) if isinstance(op, HybridOp) else op.body
        return self.nests.on_memory(body, parts, op.kernels, f"'{self.stage.label}'")

    def _level(self, depth: int) -> list[Stmt]:
        leaves = self.stage.leaf_iter_vars
        begins = self._reduces() and depth == self.first_reduction and self.tensorised != depth
        before = self._identity() if begins else []
        if depth == len(leaves):
            return [*before, *self._update()]
        leaf = leaves[depth]
        if isinstance(self.stage.origin_op, ScanOp):
            return self._loop(leaf, self.loops[leaf], tuple(self._with_attached(leaf, [])))
        if self.tensorised == depth:
            return [*before, *self._intrinsic(depth)]
        inner = self._with_attached(leaf, self._level(depth + 1))
        return [*before, *self._loop(leaf, self.loops[leaf], tuple(inner))]

    def _intrinsic(self, depth: int) -> list[Stmt]:
        """The statements of the intrinsic that stands for a loop and those inside of it."""
        whole = depth <= self.first_reduction
        return Tensorised(self, depth, self.loops).statements(whole)

    def _reduces(self) -> bool:
        return isinstance(self.stage.body[0], Reduce)

    def _attached(self, leaf: IterVar) -> list[Stage]:
        """The stages that are computed at a loop."""
        return [s for s in self.nests.computed if s.attached is not None and s.attached == (self.stage, leaf)]

    def _with_attached(self, leaf: IterVar, statements: list[Stmt]) -> list[Stmt]:
        """The statements of a turn with those of the stages that are computed in it."""
        before: list[Stmt] = []
        for other in self._attached(leaf):
            before += [*self.nests.inner[other], *self.nests.nest(other).statements()]
        return [*before, *statements]

    def _loop(self, leaf: IterVar, var: Expr, body: Body) -> list[Stmt]:
        """A loop around statements, with what its pragmas say; nothing around them where it has one turn."""
        note = self.stage.annotations.get(leaf, Annotation())
        return applied(note.pragmas, self._turns(leaf, note, var, body))

    def _turns(self, leaf: IterVar, note: Annotation, var: Expr, body: Body) -> list[Stmt]:
        extent = self.extents[leaf]
        if note.loop in self.nests.machine.constant_loops and not isinstance(extent, IntImm):
            raise LowerError(f"{note.loop} of '{self.stage.label}': '{leaf.name}' has extent {extent}, no constant")
        single = (
            note.thread is not None and self.nests.machine.single_threads and self.nests.machine.shares(note.thread)
        )
        if not isinstance(var, Var) and single:
            var = Var(leaf.name, INT32, True)
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
                f"{thread.thread_tag} has {declared.value} threads, '{self.stage.label}' has {extent.value} turns"
            )
        kind = thread.thread_tag.replace(".", "_")
        return S.For(var, kind if kind in S.LOOP_KINDS else _UNTOLD.get(kind, "serial"), _ZERO, extent, _ONE, body)

    # -- stores

    def values(self, loops: dict[IterVar, Expr]) -> dict[IterVar, Expr]:
        """The value of each axis of the operation in terms of the loops."""
        counted = root_values(self.stage, self.extents, loops, counted=True)
        return {
            axis: binary("add", counted[axis], self.regions[axis].min)
            for axis in (*self.stage.axis, *self.stage.reduce_axis)
            if axis in counted
        }

    def conditions(self, loops: dict[IterVar, Expr], reductions: bool) -> list[tuple[str, Expr]]:
        """The conditions of statements in loops, each with what it is about. `reductions`: also those of axes that are
        reduced over."""
        found = [
            (f"the axis '{axis.name}' is not divided, the last turn has fewer elements", c)
            for axis, c in predicates(self.stage, self.extents, loops)
            if reductions or not self._only_reduced(axis)
        ]
        values = self.values(loops)
        for axis in self.stage.axis:
            if not self.regions[axis].whole and axis.dom is not None:
                end = binary("add", axis.dom.min, axis.dom.extent)
                what = f"it is computed for points beyond the range of '{axis.name}', too"
                found += [(what, Binary("le", axis.dom.min, values[axis])), (what, Binary("lt", values[axis], end))]
        going = self.nests.place(self.stage.origin_op.output(0)).rolling if self.stage.rolling else None
        if going is not None:
            found += rolling_conditions(going, self.stage.axis, values)
        if self.stage.store_predicate is not None:
            found.append(
                (
                    "its store predicate is about single elements",
                    self._expr(self.stage.store_predicate, {**loops, **values}),
                )
            )
        return found

    def _guarded(self, loops: dict[IterVar, Expr], reductions: bool, statements: Body, *more: Expr) -> list[Stmt]:
        """Statements under the conditions of their loops."""
        return nested([*(c for _, c in self.conditions(loops, reductions)), *more], statements)

    def _elements(self, values: dict[IterVar, Expr]) -> Sequence[E.BufferLoad | ProducerLoad]:
        """What the stage computes at a point."""
        places = (self.nests.places[self.stage.origin_op, i] for i in range(len(self.stage.body)))
        at = [values[a] for a in self.stage.axis]
        return [E.BufferLoad(place.buffer, indices_in(place, at)) for place in places]

    def _expr(self, e: Expr, values: dict[IterVar, Expr]) -> Expr:
        mapping: dict[Expr, Expr] = {axis.as_expr(): value for axis, value in values.items()}
        return self.nests.read(rewrite(e, mapping.get))

    def _update(self) -> list[Stmt]:
        """The statements of the innermost loop."""
        values = self.values(self.loops)
        elements, first = self._elements(values), self.stage.body[0]
        if not isinstance(first, Reduce):
            return self._guarded(self.loops, True, stored(elements, [self._expr(e, values) for e in self.stage.body]))
        made = reduced(first.combiner, elements, [self._expr(e, values) for e in first.source])
        return self._guarded(self.loops, True, made, self._expr(first.condition, values))

    def _only_reduced(self, axis: IterVar) -> bool:
        """Whether all that an axis is made of is reduced over."""
        return axis.is_reduction and not (self.mixed and roots_of(self.stage, axis) & {*self.stage.axis})

    def _counter_of_begin(self, axis: IterVar, var: Var) -> Var:
        """The variable of a loop over the elements that a reduction begins with."""
        return Var(f"{var.name}_init", var.dtype, var.nonneg)

    def _identity(self) -> list[Stmt]:
        """The start values, for all elements that the loops inside of here reduce."""
        spatial = {a: v for a, v in self.loops.items() if not self._only_reduced(a)}
        inner = [a for a in self.stage.leaf_iter_vars[self.first_reduction : self.tensorised] if a in spatial]
        for axis in inner:
            var = spatial[axis]
            if isinstance(var, Var):
                spatial[axis] = self._counter_of_begin(axis, var)
        values = self.values(spatial)
        first = self.stage.body[0]
        assert isinstance(first, Reduce)
        if self.tensorised is not None:
            made: Body = tuple(Tensorised(self, self.tensorised, spatial).reset())
        else:
            start = [self._expr(e, values) for e in (first.init or first.combiner.identity_element)]
            made = tuple(self._guarded(spatial, False, stored(self._elements(values), start)))
        for axis in reversed(inner):
            made = tuple(self._loop(axis, spatial[axis], made))
        return list(made)
