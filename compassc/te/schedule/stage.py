"""One stage of a schedule: the loops of an operation, and where it is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compassc.ir.exprs import Expr, IntImm
from compassc.te.axes import IterVar, Kind, Range
from compassc.te.errors import ScheduleError
from compassc.te.nodes import Reduce
from compassc.te.schedule.trace import primitive
from compassc.te.tensor import ComputeOp, Operation
from compassc.te.values import Value, as_expr, binary, kind_of

if TYPE_CHECKING:
    from compassc.te.schedule.schedule import Schedule

SCOPES = ("global", "shared", "lsram", "local")
LOOPS = ("vectorize", "unroll", "parallel")
"""The annotations that a loop can have."""


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


@dataclass
class Annotation:
    """The annotation of one loop: `loop` one of LOOPS, the thread it is bound to."""

    loop: str = ""
    thread: IterVar | None = None


class Stage:
    """The loops of one operation.

    `body`: what it computes, one expression per output, as the steps so far have left it. `leaf_iter_vars`: its loops,
    the outermost first. `attached`: the stage and the loop that it is computed at, None for the outermost level.
    """

    def __init__(self, schedule: Schedule, op: Operation, label: str, is_output: bool = False) -> None:
        self.schedule, self.op, self.label, self.is_output = schedule, op, label, is_output
        self.body: tuple[Expr, ...] = op.body if isinstance(op, ComputeOp) else ()
        self.axis: tuple[IterVar, ...] = op.axis if isinstance(op, ComputeOp) else ()
        self.reduce_axis: tuple[IterVar, ...] = op.reduce_axis if isinstance(op, ComputeOp) else ()
        self.relations: list[Relation] = []
        self.all_iter_vars: list[IterVar] = [*self.axis, *self.reduce_axis]
        self.leaf_iter_vars: list[IterVar] = list(self.all_iter_vars)
        self.annotations: dict[IterVar, Annotation] = {}
        self.attached: tuple[Stage, IterVar] | None = None
        self.inlined = False
        self.scope = ""
        self.double_buffered = False

    # ------------------------------------------------------------------------------------------------ names and checks

    @property
    def name(self) -> str:
        return self.op.name

    def __repr__(self) -> str:
        return f"stage({self.label}, leaves=[{', '.join(map(self.label_of, self.leaf_iter_vars))}])"

    def label_of(self, axis: IterVar) -> str:
        """The name of an axis; with a number where an earlier one has the same."""
        same = [a for a in self.all_iter_vars if a.name == axis.name]
        place = next(i for i, a in enumerate(same) if a is axis)
        return axis.name if not place else f"{axis.name}#{place}"

    def axis_named(self, label: str) -> IterVar:
        """The axis that `label_of` calls so. ScheduleError when there is none."""
        for axis in self.all_iter_vars:
            if self.label_of(axis) == label:
                return axis
        known = ", ".join(map(self.label_of, self.all_iter_vars))
        raise ScheduleError(f"stage '{self.label}' has no axis '{label}'; it has {known or 'none'}")

    def _computed(self, step: str) -> None:
        if not isinstance(self.op, ComputeOp):
            raise ScheduleError(f"{step} of '{self.label}': it is given to the kernel, not computed")
        if self.inlined:
            raise ScheduleError(f"{step} of '{self.label}': it is computed inline and has no loops")

    def _leaf(self, step: str, axis: Any) -> int:
        """The place of a loop. ScheduleError when it is none of this stage's loops now."""
        self._computed(step)
        if not isinstance(axis, IterVar):
            raise ScheduleError(f"{step} of '{self.label}': expected an axis, got {axis!r}")
        for place, leaf in enumerate(self.leaf_iter_vars):
            if leaf is axis:
                return place
        if any(a is axis for a in self.all_iter_vars):
            raise ScheduleError(
                f"{step} of '{self.label}': the axis '{axis.name}' was split or fused already",
                f"its loops are {', '.join(a.name for a in self.leaf_iter_vars)}",
            )
        raise ScheduleError(f"{step} of '{self.label}': the axis '{axis.name}' is not one of its axes")

    def _plain(self, step: str, axis: IterVar) -> None:
        """ScheduleError when a loop is annotated, or when a stage is computed at it: both belong to that very loop."""
        found = self.annotations.get(axis)
        if found is not None and (found.loop or found.thread is not None):
            raise ScheduleError(
                f"{step} of '{self.label}': the axis '{axis.name}' is annotated already", "annotate loops last"
            )
        for stage in self.schedule.stages:
            if stage.attached is not None and stage.attached[1] is axis:
                raise ScheduleError(f"{step} of '{self.label}': '{stage.label}' is computed at the axis '{axis.name}'")

    # ----------------------------------------------------------------------------------------------------------- loops

    @primitive
    def split(self, parent: IterVar, factor: Any = None, nparts: Any = None) -> tuple[IterVar, IterVar]:
        """Two loops for one: `factor` turns of the inner one, or `nparts` of the outer one; what does not divide is
        guarded."""
        place = self._leaf("split", parent)
        if (factor is None) == (nparts is None):
            raise ScheduleError(f"split of '{parent.name}' in '{self.label}' needs one of factor and nparts")
        self._plain("split", parent)
        given = as_expr(nparts if factor is None else factor)
        if not given.dtype.is_integer or (isinstance(given, IntImm) and given.value < 1):
            raise ScheduleError(f"split of '{parent.name}' in '{self.label}': {Value(given)} is no number of turns")
        outer, inner = (IterVar(None, f"{parent.name}.{side}", parent.kind) for side in ("outer", "inner"))
        self.relations.append(
            Split(parent, outer, inner, None if factor is None else given, None if nparts is None else given)
        )
        self._replace(place, 1, outer, inner)
        return outer, inner

    @primitive
    def fuse(self, *axes: IterVar) -> IterVar:
        """One loop for neighbours, or a new loop of one turn when no axis is given."""
        if not axes:
            self._computed("fuse")
            made = IterVar(Range(1), "singleton", Kind.DATA_PARALLEL)
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
        if first.is_reduction != second.is_reduction:
            raise ScheduleError(
                f"fuse of '{first.name}' and '{second.name}' in '{self.label}': only one of them is reduced over"
            )
        for axis in (first, second):
            self._plain("fuse", axis)
        fused = IterVar(None, f"{first.name}.{second.name}.fused", first.kind)
        self.relations.append(Fuse(first, second, fused))
        self._replace(a, 2, fused)
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
    def tile(self, x: IterVar, y: IterVar, x_factor: Any, y_factor: Any) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split both and put the inner loops inside: xo, yo, xi, yi."""
        xo, xi = self.split(x, factor=x_factor)
        yo, yi = self.split(y, factor=y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    # ----------------------------------------------------------------------------------------------------- annotations

    def _annotation(self, step: str, axis: IterVar) -> Annotation:
        self._leaf(step, axis)
        return self.annotations.setdefault(axis, Annotation())

    def _loop(self, step: str, axis: IterVar) -> None:
        found = self._annotation(step, axis)
        if axis.is_reduction and step == "parallel":
            raise ScheduleError(f"{step} of '{self.label}': '{axis.name}' is reduced over", "use rfactor first")
        if found.thread is not None:
            raise ScheduleError(f"{step} of '{self.label}': '{axis.name}' is bound to {found.thread.tag}")
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
        if not isinstance(thread, IterVar) or thread.kind is not Kind.THREAD:
            raise ScheduleError(f"bind of '{self.label}': the second argument is a thread axis (te.thread_axis)")
        found = self._annotation("bind", axis)
        if found.loop:
            raise ScheduleError(f"bind of '{self.label}': '{axis.name}' is marked {found.loop}")
        other = [
            a
            for a, n in self.annotations.items()
            if n.thread is not None and n.thread.tag == thread.tag and a is not axis
        ]
        if other and not thread.tag.startswith("vthread"):
            raise ScheduleError(f"bind of '{self.label}': '{other[0].name}' is bound to {thread.tag} already")
        found.thread = thread

    @primitive
    def pragma(self, axis: IterVar, kind: str, value: Any = None) -> None:
        """A hint for one loop. `unroll` and `vectorize` are the primitives of these names; others are not there yet."""
        if kind not in ("unroll", "vectorize"):
            raise ScheduleError(f"pragma of '{self.label}': '{kind}' is not supported; known are unroll, vectorize")
        self._loop(kind, axis)

    # ------------------------------------------------------------------------------------------------------- placement

    @primitive
    def compute_at(self, parent: Any, axis: IterVar) -> None:
        """Compute it inside a loop of a stage that reads it: as much as one turn of that loop needs."""
        self._computed("compute_at")
        stage = parent if isinstance(parent, Stage) else self.schedule[parent]
        stage._leaf("compute_at", axis)
        if self.is_output:
            raise ScheduleError(f"compute_at of '{self.label}': it is an output")
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
        if self.relations or self.annotations:
            raise ScheduleError(f"compute_inline of '{self.label}': its loops were scheduled already")
        self.inlined, self.attached = True, None

    @primitive
    def compute_root(self) -> None:
        """Compute it outside of all other loops, as every stage is at first."""
        self.attached, self.inlined = None, False

    @primitive
    def set_scope(self, scope: str) -> None:
        """The memory of what it computes: global, shared (of a core), lsram (of a TEC), local (registers)."""
        if scope not in SCOPES:
            raise ScheduleError(f"set_scope of '{self.label}': '{scope}' is none of {', '.join(SCOPES)}")
        if not isinstance(self.op, ComputeOp) or (self.is_output and scope != "global"):
            raise ScheduleError(f"set_scope of '{self.label}': parameters of the kernel are in global memory")
        self.scope = scope

    @primitive
    def double_buffer(self) -> None:
        """Two halves of its memory, used alternately: transfers of one run beside the work on the other."""
        self._computed("double_buffer")
        if self.is_output:
            raise ScheduleError(f"double_buffer of '{self.label}': it is an output")
        self.double_buffered = True

    def __getattr__(self, name: str) -> Any:
        if name in _MISSING:
            raise ScheduleError(f"{name} of '{self.label}' is not supported yet")
        raise AttributeError(f"a stage has no '{name}'")


_MISSING = frozenset("prefetch tensorize storage_align rolling_buffer env_threads set_store_predicate".split())


def loops_around(stage: Stage) -> list[tuple[Stage, IterVar]]:
    """The loops that stand still where a stage is computed, each with its stage; those of the innermost stage first."""
    found = []
    level = stage.attached
    while level is not None:
        parent, axis = level
        for leaf in parent.leaf_iter_vars:
            found.append((parent, leaf))
            if leaf is axis:
                break
        level = parent.attached
    return found


def is_tec(thread: IterVar | None) -> bool:
    """Whether a loop that is bound to this thread is shared out over the TECs."""
    return thread is not None and thread.tag.startswith("threadIdx")


def full_extent(axis: IterVar) -> Expr:
    """The extent that an operation gives one of its axes."""
    assert axis.dom is not None, "the axes of operations have ranges"
    return axis.dom.extent


def ceildiv(a: Expr, b: Expr) -> Expr:
    """The quotient of two positive numbers, rounded up."""
    one = Value(IntImm(kind_of(b), 1))
    return binary("floordiv", binary("sub", binary("add", Value(a), Value(b)), one), Value(b)).expr
