"""Schedules: the stages of tensor expressions, and the steps that add stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compassc.ir.dtypes import BOOL
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.exprs import Binary, Expr, IntImm, Select
from compassc.ir.iter_vars import IterKind, IterVar, Range
from compassc.ir.names import NamePool
from compassc.ir.operators import binary, immediate, kind_of
from compassc.ir.stmts import IRModule
from compassc.ir.tensor_exprs import ProducerLoad, Reduce
from compassc.ir.visit import rewrite, substitute
from compassc.te.errors import ScheduleError
from compassc.te.opaque import ScanOp, TensorIntrin
from compassc.te.schedule import record
from compassc.te.schedule.relations import (
    Fuse,
    Relation,
    Singleton,
    Split,
    leaf_extents,
    leaf_values,
    predicates,
    root_values,
)
from compassc.te.schedule.stage import SCOPES, Stage, known_scope
from compassc.te.schedule.trace import Trace, primitive, replay
from compassc.te.tensor import ComputeOp, Operation, Tensor, post_order
from compassc.te.tensor_calls import TensorComputeOp


class Schedule:
    """How tensor expressions are computed. `s[C]` is the stage of a tensor, an operation or a label; `trace` has the
    steps so far."""

    packed_object = True
    """Functions by name take it."""

    def __init__(self, outputs: Sequence[Operation]) -> None:
        self.outputs = tuple(outputs)
        self.stages: list[Stage] = []
        self.trace = Trace()
        self.groups: list[Group] = []
        self.intrinsics: dict[str, TensorIntrin] = {}
        """The intrinsics that steps of traces call by name."""
        self.variables: dict[str, Expr] = {}
        """The variables that steps of traces call by name."""
        self.running: list[str] = []
        """The steps that are being taken, the outermost first."""
        self.keep_schedule_record = False
        self.schedule_record: list[Schedule] = []
        """Its states, from the beginning on and after each step, where they are kept (`record`)."""
        self.primitive_record: list[str] = []
        """The names of the steps to these states."""
        self.replaying = False
        """Whether steps are being taken again: what they warn of was said."""
        self.lowered: tuple[list[object], IRModule] | None = None
        """The kernel that was made of it last (`compassc.te.lowering`), and the state that it was made of."""
        for op in post_order(outputs):
            self._add(op, len(self.stages), op in self.outputs)

    def _add(self, op: Operation, place: int, is_output: bool = False) -> Stage:
        label = NamePool((s.label for s in self.stages), "{}#{}".format).take(op.name)
        self.stages.insert(place, Stage(self, op, label, is_output))
        return self.stages[place]

    def snapshot(self, step_on: object = None) -> Any:
        """The state, for `restore`: all of it, or that which a step on something can change. A step on a stage changes that one,
        and at which loop others are computed."""
        alone = step_on in self.stages
        stages = [(s, {"attached": s.attached} if alone and s is not step_on else s.snapshot()) for s in self.stages]
        return list(self.groups), stages, len(self.schedule_record)

    def restore(self, saved: Any) -> None:
        """Go back to a state."""
        self.groups, stages, kept = saved
        del self.schedule_record[kept:], self.primitive_record[kept:]
        self.stages = [stage for stage, _ in stages]
        for stage, state in stages:
            stage.restore(state)

    def __getitem__(self, key: object) -> Stage:
        """The stage of a tensor, an operation or a label, or the group of a label. ScheduleError when it has none."""
        if isinstance(key, str):
            return self.stage(key)
        if isinstance(key, Stage) and key in self.stages:
            return key
        op = key.op if isinstance(key, Tensor) else key
        for stage in self.stages:
            if op in (stage.origin_op, stage.op):
                return stage
        raise ScheduleError(f"{key!r} has no stage in this schedule")

    def stage(self, label: str) -> Stage:
        """The stage with a label. ScheduleError when there is none."""
        for stage in self.stages:
            if stage.label == label:
                return stage
        for group in self.groups:
            if group.label == label:
                return group  # type: ignore[return-value]  # steps of groups are found by their labels, too
        raise ScheduleError(f"there is no stage '{label}'; there are {', '.join(s.label for s in self.stages)}")

    @property
    def stage_map(self) -> Mapping[Operation, Stage]:
        """The stage of each operation."""
        return {stage.origin_op: stage for stage in self.stages}

    def owner(self, axis: IterVar) -> Stage:
        """The stage that an axis belongs to."""
        for stage in self.stages:
            if any(a is axis for a in stage.all_iter_vars):
                return stage
        raise ScheduleError(f"the axis '{axis.name}' belongs to no stage of this schedule")

    def readers(self, stage: Stage) -> list[Stage]:
        """The stages that read what a stage computes."""
        return [s for s in self.stages if s.reads(stage.origin_op)]

    def reaches(self, stage: Stage, other: Stage) -> bool:
        """Whether `other` reads what `stage` computes, directly or through other stages."""
        todo, seen = [stage], set()
        while todo:
            for reader in self.readers(todo.pop()):
                if reader is other:
                    return True
                if reader.label not in seen:
                    seen.add(reader.label)
                    todo.append(reader)
        return False

    def replayed(self, trace: Trace) -> Schedule:
        """A new schedule of the same expressions with the steps of a trace."""
        fresh = Schedule(self.outputs)
        fresh.intrinsics, fresh.variables = dict(self.intrinsics), dict(self.variables)
        fresh.replaying = True
        replay(fresh, trace)
        fresh.replaying = False
        return fresh

    # ---------------------------------------------------------------------------------------------------------- stages

    @primitive
    def cache_read(self, tensor: Tensor, scope: str, readers: object) -> Tensor:
        """A copy of a tensor in another memory, which the given readers read in its place."""
        stage = self[tensor]
        asked, scope = scope, known_scope(scope)
        _check_scope("cache_read", stage, scope)
        listed = [r if isinstance(r, Stage) else self[r] for r in (readers if isinstance(readers, list) else [readers])]
        if not listed:
            raise ScheduleError(f"cache_read of '{stage.label}': give a reader at least")
        for reader in listed:
            if tensor not in reader.tensors_read or isinstance(reader.origin_op, ScanOp):
                raise ScheduleError(f"cache_read of '{stage.label}': '{reader.label}' does not read it")
        axes = tuple(IterVar(Range(d), f"ax{i}", IterKind.DATA_PARALLEL) for i, d in enumerate(tensor.shape))
        copy = ProducerLoad(tensor, tuple(a.as_expr() for a in axes))
        label = tensor.op.name if tensor.op.num_outputs == 1 else f"{tensor.op.name}.v{tensor.value_index}"
        op = ComputeOp(f"{label}.{scope}", axes, (copy,))
        made = self._add(op, self.stages.index(stage) + 1)
        made.scope, made.asked_scope = scope, asked
        for reader in listed:
            reader.body = tuple(rewrite(e, lambda x: _moved(x, tensor, op)) for e in reader.body)
            reader.inputs = tuple(op.output(0) if t == tensor else t for t in reader.inputs)
        return op.output(0)

    @primitive
    def cache_write(self, tensor: object, scope: str) -> Any:
        """A stage that computes the tensor in another memory; the old one becomes a copy of it, in plain loops again. The
        axes of the new one are the loops that the old one had, in their order: its memory is laid out so. Outputs of one
        operation are given together, as a list."""
        listed = list(tensor) if isinstance(tensor, (list, tuple)) else [tensor]
        if not listed:
            raise ScheduleError("cache_write: give a tensor at least")
        stage = self[listed[0]]
        stage._computed("cache_write")
        stage._unmixed("cache_write")
        asked, scope = scope, known_scope(scope)
        _check_scope("cache_write", stage, scope)
        if len(listed) != len(stage.body):
            raise ScheduleError(
                f"cache_write of '{stage.label}': {len(listed)} of its {len(stage.body)} outputs are given, give all"
            )
        whole = stage.origin_op
        by_intrinsic = isinstance(whole, TensorComputeOp) and stage.intrinsic_of(whole.loops[1][0]) is whole.intrin
        in_order = [a for a in stage.leaf_iter_vars if not a.is_reduction] == [*stage.axis]
        if by_intrinsic and in_order and not stage.relations:
            stage.annotations = {}
        for axis in stage.leaf_iter_vars:
            stage._plain("cache_write", axis)
            stage._empty("cache_write", axis)
        op, indices = _relaid(stage, scope)
        if by_intrinsic:
            assert isinstance(whole, TensorComputeOp)
            op = whole.relaid(op)
        made = self._add(op, self.stages.index(stage))
        made.scope, made.asked_scope = scope, asked
        stage.body = tuple(ProducerLoad(op.output(i), indices) for i in range(len(stage.body)))
        stage.reduce_axis, stage.relations = (), []
        stage.leaf_iter_vars, stage.all_iter_vars = list(stage.axis), list(stage.axis)
        return op.outputs if isinstance(tensor, (list, tuple)) else op.output(0)

    @primitive
    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
        """Reduce over all but one loop into a stage of its own, with that loop as a further axis; the old stage reduces
        over that axis alone. Sums of floats are added in another order by it."""
        stage = self[tensor]
        stage._leaf("rfactor", axis)
        if not axis.is_reduction:
            raise ScheduleError(f"rfactor of '{stage.label}': '{axis.name}' is not reduced over")
        stage._unmixed("rfactor")
        stage._empty("rfactor", *(a for a in stage.leaf_iter_vars if a.is_reduction))
        rank = len(stage.axis)
        place = factor_axis + rank + 1 if factor_axis < 0 else factor_axis
        if not 0 <= place <= rank:
            raise ScheduleError(f"rfactor of '{stage.label}': there is no place {factor_axis} for a further axis")
        op = _factored(stage, axis, place)
        made = self._add(op, self.stages.index(stage))
        made.scope = stage.scope
        _reduce_factored(stage, op, axis, place)
        return op.outputs if op.num_outputs > 1 else op.output(0)

    @primitive
    def create_group(self, outputs: object, inputs: object, include_inputs: bool = False) -> Group:
        """The stages between tensors, to be computed at one place together: what leads from `inputs` to `outputs`."""
        ends, begins = ([self[t] for t in (x if isinstance(x, (list, tuple)) else [x])] for x in (outputs, inputs))
        members = []
        for stage in self.stages:
            below = stage in begins or any(self.reaches(b, stage) for b in begins)
            above = stage in ends or any(self.reaches(stage, e) for e in ends)
            if below and above and (include_inputs or stage not in begins):
                members.append(stage)
        for stage in members:
            stage._computed("create_group")
        if not members:
            raise ScheduleError("create_group: no stage leads from the inputs to the outputs")
        group = Group(self, f"group{len(self.groups)}", members)
        self.groups.append(group)
        return group

    def normalize(self) -> Schedule:
        """The schedule that is lowered: inlined stages stand where they are read, stages of scans in their loops."""
        from compassc.te.lowering import normalised

        return normalised(self)


class Group:
    """Stages that are moved together: a step on the group is that step on each of `members`.

    Steps on loops are ScheduleErrors: a group has none.
    """

    def __init__(self, schedule: Schedule, label: str, members: list[Stage]) -> None:
        self.schedule, self.label, self.members = schedule, label, members

    op = None
    """A group computes nothing itself."""

    @property
    def num_child_stages(self) -> int:
        """How many stages it has."""
        return len(self.members)

    @property
    def attach_type(self) -> int:
        """Where its stages are computed: 1 on the outermost level, 4 at a loop."""
        return self.members[-1].attach_type

    @property
    def attach_stage(self) -> Stage | None:
        """The stage that they are computed at a loop of."""
        return self.members[-1].attach_stage

    @property
    def attach_ivar(self) -> IterVar | None:
        """The loop that they are computed at."""
        return self.members[-1].attach_ivar

    @primitive
    def compute_at(self, parent: object, axis: IterVar) -> None:
        """Compute all of its stages inside a loop of a stage that reads what they give."""
        for stage in self.members:
            stage.compute_at(parent, axis)

    @primitive
    def compute_root(self) -> None:
        """Compute all of its stages on the outermost level."""
        for stage in self.members:
            stage.compute_root()

    @primitive
    def compute_inline(self) -> None:
        """Put the expressions of all of its stages in place of the elements that are read."""
        for stage in self.members:
            stage.compute_inline()

    @primitive
    def set_scope(self, scope: str) -> None:
        """The memory of what all of its stages compute."""
        for stage in self.members:
            stage.set_scope(scope)

    @primitive
    def double_buffer(self) -> None:
        """Two halves of the memory of all of its stages."""
        for stage in self.members:
            stage.double_buffer()

    @primitive
    def env_threads(self, threads: object) -> None:
        """Threads that run around all of its stages."""
        for stage in self.members:
            stage.env_threads(threads)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(getattr(Stage, name, None), "__wrapped__"):
            raise AttributeError(f"a group has no '{name}'")
        members = ", ".join(stage.label for stage in self.members)

        def refuse(*_: object, **__: object) -> None:
            raise ScheduleError(f"{name} of '{self.label}': a group has no loops", f"take the step on one of {members}")

        return refuse

    def __repr__(self) -> str:
        return f"group({self.label}, stages=[{', '.join(stage.label for stage in self.members)}])"


def create_schedule(ops: Any) -> Schedule:
    """The schedule of operations (or tensors) in which every stage is computed by itself, in plain loops."""
    listed = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    found = [x.op if isinstance(x, Tensor) else x for x in listed]
    for x in found:
        if not isinstance(x, Operation):
            raise ExpressionTypeError(f"a schedule is made of operations, got {type(x).__name__}")
    made = Schedule(list(dict.fromkeys(found)))
    _check_outputs(made)
    record.begin(made)
    return made


def _check_outputs(schedule: Schedule) -> None:
    """ScheduleError for an output that is computed in the loop of a scan, a row at a time in the memory of the scan."""
    for scan in schedule.stages:
        if not isinstance(scan.op, ScanOp):
            continue
        depends = {t.op for t in scan.op.state_placeholder}
        for stage in (s for s in schedule.stages if s is not scan):
            if depends & {t.op for t in stage.tensors_read} or stage.origin_op in [t.op for t in scan.op.update]:
                depends.add(stage.origin_op)
                if stage.is_output:
                    raise ScheduleError(
                        f"create_schedule: '{stage.label}' is a part of the scan '{scan.label}' and no output",
                        "give what reads the scan, or a copy of it",
                    )


def _check_scope(step: str, stage: Stage, scope: str) -> None:
    if scope not in SCOPES:
        raise ScheduleError(f"{step} of '{stage.label}': '{scope}' is none of {', '.join(SCOPES)}")


def _moved(e: Expr, tensor: Tensor, op: ComputeOp) -> Expr | None:
    """The element of the copy for the element of a tensor."""
    if not isinstance(e, ProducerLoad) or e.producer != tensor:
        return None
    return ProducerLoad(op.output(0), tuple(rewrite(i, lambda x: _moved(x, tensor, op)) for i in e.indices))


def _relaid(stage: Stage, scope: str) -> tuple[ComputeOp, tuple[Expr, ...]]:
    """The operation of a stage with its loops as axes, and where an element of the stage is in what it gives. Points that
    loops have beyond the end are no element's: they hold the identity of a reduction, 0 otherwise."""
    extents = leaf_extents(stage)
    leaves = [a for a in stage.leaf_iter_vars if not a.is_reduction]
    roots = {a: a.dom for a in stage.axis}
    axes = tuple(IterVar(roots.get(a, Range(extents[a])), f"{a.name}.c", a.iter_type) for a in leaves)
    counted = {leaf: _shifted("sub", new.as_expr(), roots.get(leaf)) for leaf, new in zip(leaves, axes)}
    values = root_values(stage, extents, counted)
    mapping: dict[Any, Expr] = {a.as_expr(): values[a] for a in stage.axis}
    conditions = [c for _, c in predicates(stage, extents, counted, lambda a: not a.is_reduction)]
    body = [_guarded(substitute(e, mapping), conditions, mapping) for e in stage.body]
    places = leaf_values(stage, extents, {a: _shifted("sub", a.as_expr(), a.dom) for a in stage.axis})
    indices = tuple(_shifted("add", places[leaf], roots.get(leaf)) for leaf in leaves)
    return ComputeOp(f"{stage.name}.{scope}", axes, tuple(body)), indices


def _shifted(op: str, e: Expr, dom: Range | None) -> Expr:
    """A value plus or minus the beginning of a range."""
    return e if dom is None else binary(op, e, dom.min)


def _guarded(e: Expr, conditions: list[Expr], mapping: dict[Any, Expr]) -> Expr:
    """The body of an operation where conditions hold."""
    if isinstance(e, Reduce):
        sources = tuple(substitute(s, mapping) for s in e.source)
        return e.replace(source=sources, condition=_joined([substitute(e.condition, mapping), *conditions]))
    return Select(_joined(conditions), e, immediate(0, kind_of(e))) if conditions else e


# ------------------------------------------------------------------------------------------------------------- rfactor


def _factored(stage: Stage, axis: IterVar, place: int) -> ComputeOp:
    """The operation that reduces over all loops but `axis`, which is one of its axes."""
    extents = leaf_extents(stage)
    fresh = {
        leaf: leaf if leaf in stage.reduce_axis else IterVar(Range(extents[leaf]), leaf.var, IterKind.REDUCTION)
        for leaf in stage.leaf_iter_vars
        if leaf.is_reduction and leaf is not axis
    }
    fresh = dict(sorted(fresh.items(), key=lambda pair: pair[0] not in stage.reduce_axis))  # untouched axes come first
    factor = IterVar(Range(extents[axis]), axis.name, IterKind.DATA_PARALLEL)
    loops = {leaf: new.as_expr() for leaf, new in {**fresh, axis: factor}.items()}
    values = root_values(stage, extents, loops)
    spatial = [IterVar(a.dom, a.name, a.iter_type) for a in stage.axis]
    mapping: dict[Any, Expr] = {root.as_expr(): values[root] for root in stage.reduce_axis}
    mapping |= {old.as_expr(): new.as_expr() for old, new in zip(stage.axis, spatial)}
    conditions = [c for _, c in predicates(stage, extents, loops, lambda a: a.is_reduction)]
    body: list[Expr] = []
    for e in stage.body:
        assert isinstance(e, Reduce)
        condition = _joined([substitute(e.condition, mapping), *conditions])
        sources = tuple(substitute(s, mapping) for s in e.source)
        if fresh:
            axes = tuple(fresh.values())
            body.append(Reduce(e.combiner, sources, axes, condition, e.value_index))
        else:
            plain = isinstance(condition, IntImm)
            source, identity = sources[e.value_index], e.combiner.identity_element[e.value_index]
            body.append(source if plain else Select(condition, source, identity))
    axes = (*spatial[:place], factor, *spatial[place:])
    return ComputeOp(f"{stage.name}.rf", axes, tuple(body))


def _reduce_factored(stage: Stage, op: ComputeOp, axis: IterVar, place: int) -> None:
    """Has a stage reduce what `op` computes over the axis that was left."""
    left = IterVar(op.axis[place].dom, f"{axis.name}.v", IterKind.REDUCTION)
    indices = [a.as_expr() for a in stage.axis]
    indices.insert(place, left.as_expr())
    sources = tuple(ProducerLoad(t, tuple(indices)) for t in op.outputs)
    body = []
    for e in stage.body:
        assert isinstance(e, Reduce)
        body.append(Reduce(e.combiner, sources, (left,), IntImm(BOOL, 1), e.value_index, e.init))
    stage.body = tuple(body)
    stage.reduce_axis = (left,)
    stage.relations = [r for r in stage.relations if not _of_reduction(r)]
    stage.all_iter_vars = [*(a for a in stage.all_iter_vars if not a.is_reduction), left]
    stage.annotations = {a: n for a, n in stage.annotations.items() if not a.is_reduction}
    stage.leaf_iter_vars = [*(a for a in stage.leaf_iter_vars if not a.is_reduction), left]


def _of_reduction(relation: Relation) -> bool:
    """Whether a relation is between axes that are reduced over."""
    match relation:
        case Split(parent=axis) | Fuse(fused=axis) | Singleton(axis=axis):
            return axis.is_reduction


def _joined(conditions: Sequence[Expr]) -> Expr:
    """All of the conditions, without those that always hold."""
    left = [c for c in conditions if not (isinstance(c, IntImm) and c.value)]
    if not left:
        return IntImm(BOOL, 1)
    joined = left[0]
    for c in left[1:]:
        joined = Binary("and", joined, c)
    return joined
