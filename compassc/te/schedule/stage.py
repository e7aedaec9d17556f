"""One stage of a schedule: the loops of an operation, and where it is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from compass_core import vendor
from compassc.analysis.structure import variables
from compassc.ir.dtypes import BOOL
from compassc.ir.errors import warn
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.iter_vars import IterKind, IterVar, Range
from compassc.ir.operators import as_expr, cast, kind_of, matched
from compassc.ir.tensor_exprs import Reduce, reads
from compassc.te.errors import ScheduleError
from compassc.te.opaque import ExternOp, ScanOp, TensorIntrin
from compassc.te.pragmas import STEPS, why_wrong
from compassc.te.schedule import record
from compassc.te.schedule.annotation import Annotation
from compassc.te.schedule.relations import Fuse, Relation, Singleton, Split, roots_of
from compassc.te.schedule.trace import primitive
from compassc.te.tensor import ComputeOp, Operation, PlaceholderOp, RewrittenOp, Tensor, tensor_of
from compassc.te.tensor_calls import TensorComputeOp

if TYPE_CHECKING:
    from compassc.te.schedule.schedule import Group, Schedule

SCOPES = ("global", "shared", "lsram", "local")
OTHER_SCOPES = ("warp", "wmma", "texture", "m16n8k8", "vtcm")
"""Memory that other machines have."""


def known_scope(scope: str) -> str:
    """The memory here for one of a program for other machines, which is plain memory."""
    return "local" if vendor.names_in_use and scope.split(".")[0] in OTHER_SCOPES else scope


def _is_first(condition: Expr, thread: IterVar | None) -> bool:
    """Whether a condition is that of thread 0, of those that an axis stands for: others might not be there."""
    own = None if thread is None else thread.as_expr()
    if not isinstance(condition, Binary) or condition.op != "eq" or not isinstance(own, Var):
        return False
    if not isinstance(condition.a, Var) or not isinstance(condition.b, IntImm) or condition.b.value != 0:
        return False
    return condition.a.name == own.name  # a replay has threads of its own


class Stage:
    """The loops of one operation.

    `origin_op`: the operation that it was made for. `body`: what it computes, one expression per output, as the steps so far
    have left it. `leaf_iter_vars`: its loops,
    the outermost first. `attached`: the stage and the loop that it is computed at, None for the outermost level.
    """

    packed_object = True
    """Functions by name take it."""
    derived: ClassVar[tuple[str, ...]] = ("schedule", "_latest", "_read")
    """Attributes that follow from others, or lead back to the schedule."""

    def __init__(self, schedule: Schedule, op: Operation, label: str, is_output: bool = False) -> None:
        self.schedule, self.origin_op, self.label, self.is_output = schedule, op, label, is_output
        self._latest: ComputeOp | None = None
        self._read: tuple[object, object, list[Tensor], set[Operation]] = None, None, [], set()
        self.body: tuple[Expr, ...] = op.body if isinstance(op, (ComputeOp, ScanOp)) else ()
        self.axis: tuple[IterVar, ...] = getattr(op, "axis", ())
        self.inputs: tuple[Tensor, ...] = op.inputs if isinstance(op, ExternOp) else ()
        """The tensors that statements read, whole."""
        self.reduce_axis: tuple[IterVar, ...] = op.reduce_axis if isinstance(op, ComputeOp) else ()
        self.relations: list[Relation] = []
        self.all_iter_vars: list[IterVar] = [*self.axis, *self.reduce_axis]
        self.leaf_iter_vars: list[IterVar] = list(self.all_iter_vars)
        self.annotations: dict[IterVar, Annotation] = {}
        if isinstance(op, TensorComputeOp):
            outside, inside = op.loops
            self.leaf_iter_vars = [*outside, *inside]
            self.annotations[inside[0]] = Annotation(intrin=op.intrin)
        self.attached: tuple[Stage, IterVar] | None = None
        self.inlined = False
        self.scope = self.asked_scope = ""
        self.double_buffered = False
        self.rolling = False
        self.alignments: dict[int, tuple[int, int]] = {}
        """By dimension: what its stride is modulo what."""
        self.store_predicate: Expr | None = None
        self.environment: tuple[IterVar, ...] = ()

    # ------------------------------------------------------------------------------------------------ names and checks

    @property
    def name(self) -> str:
        return self.origin_op.name

    @property
    def op(self) -> Operation:
        """What it computes as an operation: `origin_op` until a step changes what is computed (`rfactor`, `cache_write`, ...),
        then one with the axes and the body of now."""
        origin = self.origin_op
        if not isinstance(origin, ComputeOp) or self.body is origin.body:
            return origin
        if self._latest is None or self._latest.body is not self.body:
            self._latest = RewrittenOp(origin, self.axis, self.body)
        return self._latest

    @property
    def tensors_read(self) -> list[Tensor]:
        """The tensors that it reads: each as often as its body does, then those that it reads whole."""
        if self._read[0] is not self.body or self._read[1] is not self.inputs:
            scanned = self.origin_op.init if isinstance(self.origin_op, ScanOp) else ()
            found = [*(tensor_of(r) for e in self.body for r in reads(e)), *self.inputs, *scanned]
            self._read = self.body, self.inputs, found, {t.op for t in found}
        return self._read[2]

    def reads(self, op: Operation) -> bool:
        """Whether it reads what an operation gives."""
        return bool(self.tensors_read) and op in self._read[3]

    @property
    def iter_var_attrs(self) -> Mapping[IterVar, Annotation]:
        """The annotations of its loops."""
        return self.annotations

    @property
    def mixed(self) -> list[IterVar]:
        """The loops that are made of axes that are reduced over and of others."""
        reduced = [a for a in self.leaf_iter_vars if a.is_reduction and a not in self.reduce_axis]
        return [a for a in reduced if not roots_of(self, a) <= {*self.reduce_axis}]

    @property
    def attach_type(self) -> int:
        """Where it is computed: 1 on the outermost level, 2 inline, 4 at a loop, 5 in the loop of a scan."""
        if self.inlined:
            return 2
        if self.attached is not None:
            return 4
        scans = (s.origin_op for s in self.schedule.stages if isinstance(s.origin_op, ScanOp))
        return 5 if any(self.origin_op is t.op for scan in scans for t in scan.update) else 1

    @property
    def attach_stage(self) -> Stage | None:
        """The stage that it is computed at a loop of."""
        return None if self.attached is None else self.attached[0]

    @property
    def attach_ivar(self) -> IterVar | None:
        """The loop that it is computed at."""
        return None if self.attached is None else self.attached[1]

    layout_transforms: ClassVar[tuple[object, ...]] = ()
    axis_separators: ClassVar[tuple[object, ...]] = ()
    """Steps that lay out tensors another way: there are none."""

    @property
    def num_child_stages(self) -> int:
        """None: groups have stages."""
        return 0

    @property
    def group(self) -> Group | None:
        """The innermost group that it is in."""
        return min((g for g in self.schedule.groups if self in g.members), key=lambda g: len(g.members), default=None)

    def __repr__(self) -> str:
        return f"stage({self.label}, leaves=[{', '.join(map(self.label_of, self.leaf_iter_vars))}])"

    def snapshot(self) -> dict[str, object]:
        """The state, for `restore`."""
        annotations = {a: n.copied() for a, n in self.annotations.items()} if self.annotations else {}
        return {
            **vars(self),
            "relations": self.relations[:],
            "all_iter_vars": self.all_iter_vars[:],
            "leaf_iter_vars": self.leaf_iter_vars[:],
            "annotations": annotations,
            "alignments": dict(self.alignments),
        }

    def restore(self, saved: dict[str, object]) -> None:
        """Go back to a state."""
        vars(self).update(saved)

    def label_of(self, axis: IterVar) -> str:
        """The name of an axis; with a number where an earlier one has the same."""
        same = [a for a in self.all_iter_vars if a.name == axis.name]
        place = next(i for i, a in enumerate(same) if a is axis)
        return axis.name if not place else f"{axis.name}#{place}"

    def __getitem__(self, label: str) -> IterVar:
        """The axis that `label_of` calls so. ScheduleError when there is none."""
        for axis in self.all_iter_vars:
            if self.label_of(axis) == label:
                return axis
        known = ", ".join(map(self.label_of, self.all_iter_vars))
        raise ScheduleError(f"stage '{self.label}' has no axis '{label}'; it has {known or 'none'}")

    def _has_program(self, step: str) -> None:
        if isinstance(self.origin_op, PlaceholderOp):
            raise ScheduleError(f"{step} of '{self.label}': {_NOT_COMPUTED[PlaceholderOp]}")

    def _computed(self, step: str) -> None:
        if not isinstance(self.origin_op, ComputeOp):
            why = next(why for kind, why in _NOT_COMPUTED.items() if isinstance(self.origin_op, kind))
            raise ScheduleError(f"{step} of '{self.label}': {why}")
        if self.inlined:
            raise ScheduleError(f"{step} of '{self.label}': it is computed inline and has no loops")

    def _leaf(self, step: str, axis: object, other: str = "") -> int:
        """The place of a loop. ScheduleError when it is none of this stage's loops now. `other`: the stage that the step is
        about, where it is another one."""
        own_loops = isinstance(self.origin_op, ExternOp) and bool(self.axis)  # those of statements that the op knows
        if not other and not own_loops:
            self._computed(step)
        elif other and not isinstance(self.origin_op, (ComputeOp, ScanOp)) or self.inlined:
            raise ScheduleError(f"{step} of '{other}': '{self.label}' has no loops")
        step, of = (f"{step} of '{other}'", f" of '{self.label}'") if other else (f"{step} of '{self.label}'", "")
        if not isinstance(axis, IterVar):
            raise ScheduleError(f"{step}: expected an axis, got {axis!r}")
        for place, leaf in enumerate(self.leaf_iter_vars):
            if leaf is axis:
                return place
        if any(a is axis for a in self.all_iter_vars):
            raise ScheduleError(
                f"{step}: the axis '{axis.name}'{of} was split or fused already",
                f"its loops are {', '.join(a.name for a in self.leaf_iter_vars)}",
            )
        owner = f"an axis{of}" if other else "one of its axes"
        raise ScheduleError(f"{step}: the axis '{axis.name}' is not {owner}")

    def _plain(self, step: str, axis: IterVar) -> None:
        """ScheduleError when a loop is annotated: that belongs to this very loop."""
        found = self.annotations.get(axis)
        if found is not None and (found.loop or found.thread is not None or found.intrin is not None or found.pragmas):
            raise ScheduleError(
                f"{step} of '{self.label}': the axis '{axis.name}' is annotated already", "annotate loops last"
            )

    def _moved(self, axes: Sequence[IterVar], to: IterVar) -> None:
        """Has what was computed at one of these loops computed at another one: each turn of it is within one of theirs."""
        for stage in self.schedule.stages:
            at = stage.attached[1] if stage.attached is not None else None
            if at is not None and any(a is at for a in axes):
                stage.attached = self, to

    def _unmixed(self, step: str) -> None:
        """ScheduleError when a loop is made of axes that are reduced over and of others."""
        for axis in self.mixed[:1]:
            raise ScheduleError(f"{step} of '{self.label}': its loop '{axis.name}' is reduced over in parts only")

    def _empty(self, step: str, *axes: IterVar) -> None:
        """ScheduleError when a stage is computed at one of these loops."""
        for stage in self.schedule.stages:
            at = stage.attached[1] if stage.attached is not None else None
            if at is not None and any(a is at for a in axes):
                raise ScheduleError(f"{step} of '{self.label}': '{stage.label}' is computed at the axis '{at.name}'")

    # ----------------------------------------------------------------------------------------------------------- loops

    @primitive
    def split(self, parent: IterVar, factor: object = None, nparts: object = None) -> tuple[IterVar, IterVar]:
        """Two loops for one: `factor` turns of the inner one, or `nparts` of the outer one; what does not divide is
        guarded."""
        place = self._leaf("split", parent)
        if (factor is None) == (nparts is None):
            raise ScheduleError(f"split of '{parent.name}' in '{self.label}' needs one of factor and nparts")
        self._plain("split", parent)
        given, kind = as_expr(nparts if factor is None else factor), kind_of(parent.as_expr())
        if not given.dtype.is_integer or given.dtype.is_bool or (isinstance(given, IntImm) and given.value < 1):
            raise ScheduleError(f"split of '{parent.name}' in '{self.label}': {given} is no number of turns")
        turning = {a.as_expr() for s in self.schedule.stages for a in s.all_iter_vars} & set(variables(given))
        if turning:
            raise ScheduleError(
                f"split of '{parent.name}' in '{self.label}': {given} depends on the axis '{turning.pop()}'",
                "a number of turns is known before the loops run",
            )
        given = cast(given, kind)
        outer, inner = (
            IterVar(None, f"{parent.name}.{side}", parent.iter_type, dtype=kind) for side in ("outer", "inner")
        )
        self.relations.append(
            Split(parent, outer, inner, None if factor is None else given, None if nparts is None else given)
        )
        self._replace(place, 1, outer, inner)
        self._moved((parent,), inner)
        return outer, inner

    @primitive
    def fuse(self, *axes: IterVar) -> IterVar:
        """One loop for neighbours, or a new loop of one turn when no axis is given."""
        if not axes:
            self._computed("fuse")
            made = IterVar(Range(1), "singleton", IterKind.DATA_PARALLEL)
            self.relations.append(Singleton(made))
            self.leaf_iter_vars.insert(0, made)
            self.all_iter_vars.append(made)
            return made
        fused = axes[0]
        self._leaf("fuse", fused)
        for axis in axes[1:]:
            fused = self._fuse_two(fused, axis)
        return fused

    def _fuse_two(self, first: IterVar, second: IterVar) -> IterVar:
        a, b = self._leaf("fuse", first), self._leaf("fuse", second)
        if abs(a - b) != 1:
            raise ScheduleError(f"fuse of '{first.name}' and '{second.name}' in '{self.label}': they are no neighbours")
        if a > b:
            first, second, a = second, first, b
        for axis in (first, second):
            self._plain("fuse", axis)
        dtype = matched(kind_of(first.as_expr()), kind_of(second.as_expr()), "fuse")
        kind = max(first.iter_type, second.iter_type)
        fused = IterVar(None, f"{first.name}.{second.name}.fused", kind, dtype=dtype)
        self.relations.append(Fuse(first, second, fused))
        self._replace(a, 2, fused)
        self._moved((first, second), fused)
        record.keep(self.schedule, "fuse")
        return fused

    def _replace(self, place: int, count: int, *made: IterVar) -> None:
        self.leaf_iter_vars[place : place + count] = made
        self.all_iter_vars.extend(made)

    @primitive
    def reorder(self, *axes: IterVar) -> None:
        """The given loops in the given order, at the places that they had."""
        places = [self._leaf("reorder", axis) for axis in axes]
        if len(set(places)) != len(places):
            twice = next(a.name for i, a in enumerate(axes) if places.index(places[i]) != i)
            raise ScheduleError(f"reorder of '{self.label}': the axis '{twice}' is given twice")
        for place, axis in zip(sorted(places), axes):
            self.leaf_iter_vars[place] = axis

    @primitive
    def tile(
        self, x: IterVar, y: IterVar, x_factor: object, y_factor: object
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split both and put the inner loops inside: xo, yo, xi, yi."""
        xo, xi = self.split(x, factor=x_factor)
        yo, yi = self.split(y, factor=y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    # ----------------------------------------------------------------------------------------------------- annotations

    def intrinsic_of(self, axis: IterVar) -> TensorIntrin | None:
        """The intrinsic that stands for a loop and those inside of it."""
        found = self.annotations.get(axis)
        return None if found is None else found.intrin

    def _annotation(self, step: str, axis: IterVar) -> Annotation:
        self._leaf(step, axis)
        return self.annotations.setdefault(axis, Annotation())

    def _loop(self, step: str, axis: IterVar) -> None:
        found = self._annotation(step, axis)
        if axis.is_reduction and (step == "parallel" or (step == "vectorize" and (vendor.names_in_use or self.mixed))):
            raise ScheduleError(f"{step} of '{self.label}': '{axis.name}' is reduced over", "use rfactor first")
        if found.thread is not None:
            raise ScheduleError(f"{step} of '{self.label}': '{axis.name}' is bound to {found.thread.thread_tag}")
        found.loop = step

    @primitive
    def vectorize(self, axis: IterVar) -> None:
        """The loop becomes vector operations; its extent must be constant."""
        self._loop("vectorize", axis)

    @primitive
    def unroll(self, axis: IterVar) -> None:
        """The loop becomes copies of its body; its extent must be constant."""
        self._loop("unroll", axis)

    @primitive
    def parallel(self, axis: IterVar) -> None:
        """The turns of the loop may run side by side."""
        self._loop("parallel", axis)

    @primitive
    def bind(self, axis: IterVar, thread: IterVar) -> None:
        """The loop's turns are shared out over threads: `threadIdx.x` are the TECs of the core. Threads that reduce over
        a part each leave their results in shared memory, where one of them joins them."""
        if not isinstance(thread, IterVar) or thread.iter_type is not IterKind.THREAD:
            raise ScheduleError(f"bind of '{self.label}': the second argument is a thread axis (te.thread_axis)")
        found = self._annotation("bind", axis)
        if found.loop:
            raise ScheduleError(f"bind of '{self.label}': '{axis.name}' is marked {found.loop}")
        other = [
            a
            for a, n in self.annotations.items()
            if n.thread is not None and n.thread.thread_tag == thread.thread_tag and a is not axis
        ]
        if other and not thread.thread_tag.startswith("vthread"):
            raise ScheduleError(f"bind of '{self.label}': '{other[0].name}' is bound to {thread.thread_tag} already")
        if found.thread is not None and found.thread.thread_tag != thread.thread_tag and not self.schedule.replaying:
            warn(
                f"bind of '{self.label}': '{axis.name}' was bound to {found.thread.thread_tag} and is to {thread.thread_tag} now"
            )
        found.thread = thread

    @primitive
    def pragma(self, axis: IterVar, kind: str, value: object = None) -> None:
        """A hint for one loop. `unroll` and `vectorize` are the steps of these names; `auto_unroll_max_step` writes out
        the loops inside that are no more than `value` statements then, `debug_skip_region` leaves out the loop, `import_c`
        and `import_llvm` bring functions for `te.call_extern` (`value`: their text, or a file with it). Others that
        the field knows change nothing, for what they ask for is done anyway: `unroll_explicit`, `loop_partition_hint`,
        `compass_dma_copy` and the `parallel_` ones."""
        reason = why_wrong(kind, value, self.origin_op)
        if reason:
            raise ScheduleError(f"pragma of '{self.label}': {reason}")
        if kind in STEPS:
            self._loop(kind, axis)
        else:
            found = self._annotation("pragma", axis)
            found.pragmas = {**found.pragmas, kind: value}

    # ------------------------------------------------------------------------------------------------------- placement

    @primitive
    def compute_at(self, parent: object, axis: IterVar) -> None:
        """Compute it inside a loop of a stage that reads it: as much as one turn of that loop needs."""
        if not isinstance(self.origin_op, ExternOp):
            self._computed("compute_at")
        if any(
            isinstance(s.origin_op, ScanOp) and self.origin_op in [t.op for t in s.origin_op.update]
            for s in self.schedule.stages
        ):
            raise ScheduleError(f"compute_at of '{self.label}': it is the update of a scan and stays in its loop")
        stage = parent if isinstance(parent, Stage) else self.schedule[parent]
        place = stage._leaf("compute_at", axis, self.label)
        done = next((a for a in stage.leaf_iter_vars[: place + 1] if stage.intrinsic_of(a) is not None), None)
        if done is not None:
            raise ScheduleError(
                f"compute_at of '{self.label}': an intrinsic does the loop '{done.name}' of '{stage.label}' and those inside"
            )
        if isinstance(stage.origin_op, ScanOp) and self.origin_op in [t.op for t in stage.origin_op.init]:
            raise ScheduleError(
                f"compute_at of '{self.label}': it is the beginning of the scan '{stage.label}' and comes before its loop"
            )
        if stage is self or not self.schedule.reaches(self, stage):
            raise ScheduleError(f"compute_at of '{self.label}': '{stage.label}' does not read what it computes")
        self.attached = (stage, axis)

    @primitive
    def compute_inline(self) -> None:
        """Put the expression in place of every element that is read."""
        self._computed("compute_inline")
        if self.is_output:
            raise ScheduleError(f"compute_inline of '{self.label}': it is an output")
        if len(self.body) > 1 or isinstance(self.body[0], Reduce):
            what = "a reduction" if isinstance(self.body[0], Reduce) else "an operation of several outputs"
            raise ScheduleError(f"compute_inline of '{self.label}': {what} has no expression for one element")
        for reader in self.schedule.readers(self):
            if isinstance(reader.origin_op, (ScanOp, ExternOp)):
                raise ScheduleError(
                    f"compute_inline of '{self.label}': '{reader.label}' reads it as a whole, which needs its memory"
                )
        if self.relations or self.annotations:
            raise ScheduleError(f"compute_inline of '{self.label}': its loops were scheduled already")
        self.inlined, self.attached = True, None

    @primitive
    def compute_root(self) -> None:
        """Compute it outside of all other loops, as every stage is at first."""
        self._has_program("compute_root")
        self.attached, self.inlined = None, False

    @primitive
    def set_scope(self, scope: str) -> None:
        """The memory of what it computes: global, shared (of a core), lsram (of a TEC), local (registers)."""
        asked, scope = scope, known_scope(scope)
        if scope not in SCOPES:
            raise ScheduleError(f"set_scope of '{self.label}': '{scope}' is none of {', '.join(SCOPES)}")
        if isinstance(self.origin_op, PlaceholderOp) or (self.is_output and scope != "global"):
            raise ScheduleError(f"set_scope of '{self.label}': parameters of the kernel are in global memory")
        self.scope, self.asked_scope = scope, asked

    @primitive
    def double_buffer(self) -> None:
        """Two halves of its memory, used alternately: transfers of one run beside the work on the other."""
        self._computed("double_buffer")
        if self.is_output:
            raise ScheduleError(f"double_buffer of '{self.label}': it is an output")
        if self.rolling:
            raise ScheduleError(f"double_buffer of '{self.label}': its buffer is circular, it has no halves")
        self.double_buffered = True

    @primitive
    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Leave gaps in its memory, so that the stride of an axis is `offset` modulo `factor` elements."""
        self._computed("storage_align")
        place = next((i for i, a in enumerate(self.axis) if a is axis), None)
        if place is None:
            raise ScheduleError(
                f"storage_align of '{self.label}': '{getattr(axis, 'name', axis)}' is no axis of its tensor"
            )
        if place == len(self.axis) - 1:
            raise ScheduleError(f"storage_align of '{self.label}': the stride of the last axis '{axis.name}' is 1")
        if not (isinstance(factor, int) and isinstance(offset, int) and factor > 0 and 0 <= offset < factor):
            raise ScheduleError(f"storage_align of '{self.label}': no stride is {offset} modulo {factor}")
        if self.is_output:
            raise ScheduleError(f"storage_align of '{self.label}': it is an output, which has no gaps")
        self.alignments[place] = (factor, offset)

    @primitive
    def tensorize(self, axis: IterVar, intrin: TensorIntrin) -> None:
        """Put an intrinsic (`te.decl_tensor_intrin`) in the place of a loop and of those inside of it."""
        found = self._annotation("tensorize", axis)
        if not isinstance(intrin, TensorIntrin):
            raise ScheduleError(
                f"tensorize of '{self.label}': expected an intrinsic, got {type(intrin).__name__}",
                "te.decl_tensor_intrin makes one",
            )
        inside = self.leaf_iter_vars[self.leaf_iter_vars.index(axis) :]
        for other in self.schedule.stages:
            if other.attached is not None and any(other.attached[1] is a for a in inside):
                raise ScheduleError(
                    f"tensorize of '{self.label}': '{other.label}' is computed at '{other.attached[1].name}', inside of it"
                )
        marked = [
            a.name for a in inside if (n := self.annotations.get(a)) is not None and (n.loop or n.thread is not None)
        ]
        if marked:
            raise ScheduleError(f"tensorize of '{self.label}': the loop '{marked[0]}' inside of it is annotated")
        count = len(intrin.op.axis) + len(intrin.op.reduce_axis)
        if len(inside) != count:
            raise ScheduleError(
                f"tensorize of '{self.label}': '{intrin.name}' has {count} loops, there are {len(inside)} from "
                f"'{axis.name}' on"
            )
        before = [a.name for a in self.leaf_iter_vars if a.is_reduction and a not in inside]
        if before and not intrin.reduces_parts:
            raise ScheduleError(
                f"tensorize of '{self.label}': '{intrin.name}' makes whole sums, and '{before[0]}' outside of it is reduced "
                "over, too",
                "have it give (whole, reset, update)",
            )
        found.intrin = intrin

    @primitive
    def env_threads(self, threads: Any) -> None:
        """Threads that run around the whole stage: nothing has to be done for it. On the NPU all TECs run the whole kernel;
        elsewhere the threads are those that loops are bound to."""
        self._has_program("env_threads")
        listed = list(threads) if isinstance(threads, (list, tuple)) else [threads]
        for thread in listed:
            if not isinstance(thread, IterVar) or thread.iter_type is not IterKind.THREAD:
                raise ScheduleError(f"env_threads of '{self.label}': {thread!r} is no thread axis (te.thread_axis)")
        self.environment = tuple(listed)

    @primitive
    def set_store_predicate(self, predicate: object) -> None:
        """Store elements only where a condition on the axes and loops holds; the others keep what was in memory. `thread.equal(0)` of a
        thread that reduces says that one thread stores what all of them have reduced, which is so without it."""
        self._computed("set_store_predicate")
        e = as_expr(predicate)
        if not e.dtype.is_scalar or kind_of(e) is not BOOL:
            raise ScheduleError(f"set_store_predicate of '{self.label}': {e} is no condition")
        if any(_is_first(e, note.thread) for a, note in self.annotations.items() if a.is_reduction):
            return
        known = {a.as_expr() for a in (*self.axis, *self.leaf_iter_vars)}
        other = [v.name for v in variables(e) if v not in known]
        if other:
            raise ScheduleError(
                f"set_store_predicate of '{self.label}': '{other[0]}' is none of its axes", "write it with s[t].op.axis"
            )
        self.store_predicate = e

    @primitive
    def prefetch(self, tensor: Tensor, axis: IterVar, offset: object = 1) -> Tensor:
        """Bring what one turn of a loop reads of a tensor into LSRAM, a turn ahead: a copy with `double_buffer`. A larger
        `offset` gives the same: the copy has two halves, and one transfer runs beside the work."""
        self._leaf("prefetch", axis)
        turns = as_expr(offset)
        if not isinstance(turns, IntImm) or turns.value < 1:
            raise ScheduleError(
                f"prefetch of '{self.label}': the offset is {offset!r}, it is a number of turns, 1 or more"
            )
        copy: Tensor = self.schedule.cache_read(tensor, "lsram", [self])
        made = self.schedule[copy]
        made.compute_at(self, axis)
        made.double_buffer()
        return copy

    @primitive
    def rolling_buffer(self) -> None:
        """Keep what the turn before of the loop that it is computed at has computed: its memory is circular along the
        dimension that moves with the loop, and a turn computes only what is new."""
        self._computed("rolling_buffer")
        if self.is_output:
            raise ScheduleError(f"rolling_buffer of '{self.label}': it is an output")
        if self.double_buffered:
            raise ScheduleError(f"rolling_buffer of '{self.label}': it has two halves, which are not circular")
        self.rolling = True


_NOT_COMPUTED = {
    PlaceholderOp: "it is given to the kernel, not computed",
    ScanOp: "it is a scan, whose loop is as it is; schedule its update",
    ExternOp: "its statements are given, it has no loops",
}
