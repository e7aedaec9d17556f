"""States: schedules as lists of steps, in the terms of records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from compass_core.dataclass import dataclass
from compassc import te
from compassc.ir.exprs import IntImm
from compassc.ir.iter_vars import IterVar
from compassc.te.schedule import Schedule
from compassc.te.schedule import Stage as ScheduleStage
from compassc.te.tensor import ComputeOp, Operation, PlaceholderOp, Tensor

Step = list[Any]
"""A step as a record has it: its code, the number of a stage, and what it takes."""
if TYPE_CHECKING:
    from .workload import ComputeDAG

ANNOTATIONS = (
    "none", "unroll", "vectorize", "parallel", "vthread", "blockIdx.x", "threadIdx.x", "blockIdx.y", "threadIdx.y",
    "blockIdx.z", "threadIdx.z", "tensorize",
)  # fmt: skip
"""By number: what a loop becomes."""


@dataclass(frozen=True)
class Iterator:
    """A loop: its name, and its extent where it is known."""

    name: str
    extent: int | None


class Stage:
    """An operation with its loops."""

    def __init__(self, op: Operation, axes: Sequence[IterVar]) -> None:
        self.op, self.axes = op, list(axes)
        self.compute_at = "root"

    @property
    def iters(self) -> list[Iterator]:
        """The loops."""
        return [Iterator(str(a.name).replace(".outer", ".0").replace(".inner", ".1"), extent_of(a)) for a in self.axes]


Staged = int | Tensor | Operation | Stage
"""What stands for a stage: its number, its operation, or a tensor of that."""
Looped = int | Iterator
"""What stands for a loop of a stage: its place, or the loop."""


def extent_of(axis: IterVar) -> int | None:
    """The extent of a loop where it is a number."""
    extent = getattr(axis.dom, "extent", None)
    return extent.value if isinstance(extent, IntImm) else None


@dataclass
class Steps:
    """The steps of a state of which the graph is not known."""

    transform_steps: list[Step]


class State:
    """A schedule of a compute graph: `transform_steps` are the steps of records, which the primitives append."""

    ANNOTATION_TRANS_TABLE: ClassVar[list[str]] = list(ANNOTATIONS)

    def __init__(self, dag: ComputeDAG, steps: Sequence[Step] = ()) -> None:
        self.dag = dag
        self.schedule: Schedule = te.create_schedule([t.op for t in dag.outputs])
        self.stages = [_stage(op) for op in dag.ops]
        self.transform_steps: list[Step] = []
        for step in steps:
            self.take(step)

    @property
    def stage_ops(self) -> list[Operation]:
        """The operations of the stages."""
        return [stage.op for stage in self.stages]

    def copy(self) -> State:
        """Another one after the same steps."""
        return State(self.dag, self.transform_steps)

    def __getitem__(self, key: Staged) -> Stage:
        return self.stages[self._number(key)]

    def __str__(self) -> str:
        lines = [f"Placeholder: {', '.join(s.op.name for s in self.stages if isinstance(s.op, PlaceholderOp))}"]
        for stage in self.stages:
            if not isinstance(stage.op, PlaceholderOp):
                lines.append(f"{stage.op.name} [{stage.compute_at}]")
                lines += [f"  for {i.name} (0,{i.extent})" for i in stage.iters]
        return "\n".join(lines)

    def _number(self, key: Staged) -> int:
        if isinstance(key, int):
            return key
        op = key.op if isinstance(key, Tensor) else key
        return next(i for i, stage in enumerate(self.stages) if stage.op is op or stage is key)

    def _iter(self, stage: int, given: Looped) -> int:
        return given if isinstance(given, int) else self.stages[stage].iters.index(given)

    # -- steps of records

    def take(self, step: Step) -> list[int]:
        """Takes a step as a record has it; what it made: places of loops, or the number of a stage. ValueError for steps that
        there are not."""
        code, *args = step
        if code not in _STEPS:
            raise ValueError(f"Invalid step format: {code}")
        made = _STEPS[code](self, *args)
        self.transform_steps.append(step)
        return list(made or ())

    def te_stage(self, number: int) -> ScheduleStage:
        """The stage of the schedule."""
        return self.schedule[self.stages[number].op]

    def _split(
        self, stage: int, place: int, extent: int, lengths: Sequence[int], inner_to_outer: bool | int = 1
    ) -> list[int]:
        axis, s, made = self.stages[stage].axes[place], self.te_stage(stage), list[IterVar]()
        if inner_to_outer:
            for length in reversed(lengths):
                axis, inner = s.split(axis, factor=length)
                made.insert(0, inner)
            made.insert(0, axis)
        else:
            for length in lengths:
                outer, axis = s.split(axis, nparts=length)
                made.append(outer)
            made.append(axis)
        self.stages[stage].axes[place : place + 1] = made
        return list(range(place, place + len(made)))

    def _follow_split(self, stage: int, place: int, source: int, count: int) -> list[int]:
        lengths = self._followed(self.transform_steps[source][4], count)
        return self._split(stage, place, 0, lengths)

    @staticmethod
    def _followed(lengths: Sequence[int], count: int) -> list[int]:
        from math import prod

        return [*lengths[: count - 1], prod(lengths[count - 1 :])]

    def _follow_fused_split(
        self, stage: int, place: int, sources: Sequence[int], level: int, factor: bool | int
    ) -> list[int]:
        from math import prod

        length = prod(self.transform_steps[i][4][level] for i in sources)
        return self._split(stage, place, 0, [length], bool(factor))

    def _fuse(self, stage: int, places: Sequence[int]) -> list[int]:
        axes = self.stages[stage].axes
        made = self.te_stage(stage).fuse(*(axes[i] for i in places))
        axes[places[0] : places[-1] + 1] = [made]
        return [places[0]]

    def _reorder(self, stage: int, order: Sequence[int]) -> None:
        axes = self.stages[stage].axes
        self.stages[stage].axes = [axes[i] for i in order]
        self.te_stage(stage).reorder(*self.stages[stage].axes)

    def _annotate(self, stage: int, place: int, number: int) -> list[int]:
        axis, s, word = self.stages[stage].axes[place], self.te_stage(stage), ANNOTATIONS[number]
        if word in ("unroll", "vectorize", "parallel"):
            getattr(s, word)(axis)
        elif word != "none":
            s.bind(axis, te.thread_axis(word))
        return [place]

    def _pragma(self, stage: int, place: int, text: str) -> None:
        kind, _, value = text.partition("$")
        axis = self.stages[stage].axes[place]
        s = self.te_stage(stage)
        s.pragma(axis, kind, int(value) if value else None)
        if kind == "auto_unroll_max_step":
            s.pragma(axis, "unroll_explicit", True)

    def _storage_align(self, stage: int, place: int, factor: int, offset: int) -> None:
        self.te_stage(stage).storage_align(self.stages[stage].axes[place], factor, offset)

    def _compute_at(self, stage: int, target: int, place: int) -> None:
        self.te_stage(stage).compute_at(self.te_stage(target), self.stages[target].axes[place])
        self.stages[stage].compute_at = f"iter of {self.stages[target].op.name}"

    def _compute_inline(self, stage: int) -> None:
        self.te_stage(stage).compute_inline()
        self.stages[stage].compute_at = "inlined"

    def _compute_root(self, stage: int) -> None:
        self.te_stage(stage).compute_root()
        self.stages[stage].compute_at = "root"

    def _cache_read(self, stage: int, scope: str, readers: Sequence[int]) -> list[int]:
        tensor = self.stages[stage].op.output(0)
        made = self.schedule.cache_read(tensor, scope, [self.stages[i].op for i in readers])
        self.stages.insert(stage + 1, _stage(made.op))
        return [stage + 1]

    def _cache_write(self, stage: int, scope: str) -> list[int]:
        made = self.schedule.cache_write(self.stages[stage].op.output(0), scope)
        self._renew(stage)
        self.stages.insert(stage, _stage(made.op))
        return [stage]

    def _rfactor(self, stage: int, place: int, factor_place: int) -> list[int]:
        made = self.schedule.rfactor(self.stages[stage].op.output(0), self.stages[stage].axes[place], factor_place)
        self._renew(stage)
        self.stages.insert(stage, _stage(made[0].op if isinstance(made, list) else made.op))
        return [stage]

    def _renew(self, stage: int) -> None:
        """The loops of a stage whose computation has changed."""
        self.stages[stage].axes = list(self.te_stage(stage).leaf_iter_vars)

    # -- primitives

    def _made(self, stage: Staged, step: Step) -> Iterator | list[Iterator]:
        """Takes a step; the loops that it made, one or several."""
        number = self._number(stage)
        places = self.take(step)
        found = [self.stages[number].iters[i] for i in places]
        return found[0] if len(found) == 1 else found

    def split(
        self, stage: Staged, iterator: Looped, lengths: Sequence[object], inner_to_outer: bool = True
    ) -> Iterator | list[Iterator]:
        """Splits a loop; `lengths` are those of the inner loops, or of the outer ones."""
        n = self._number(stage)
        place = self._iter(n, iterator)
        extent = self.stages[n].iters[place].extent or 0
        return self._made(n, ["SP", n, place, extent, list(lengths), int(inner_to_outer)])

    def follow_split(
        self, stage: Staged, iterator: Looped, src_step_id: int, n_split: int
    ) -> Iterator | list[Iterator]:
        """Splits as another step has split."""
        n = self._number(stage)
        return self._made(n, ["FSP", n, self._iter(n, iterator), src_step_id, n_split])

    def follow_fused_split(
        self, stage: Staged, iterator: Looped, src_step_ids: Sequence[int], level: int, factor_or_nparts: bool
    ) -> Iterator | list[Iterator]:
        """Splits as other steps have split what was fused."""
        n = self._number(stage)
        return self._made(n, ["FFSP", n, self._iter(n, iterator), list(src_step_ids), level, int(factor_or_nparts)])

    def fuse(self, stage: Staged, iters: Sequence[Looped]) -> Iterator | list[Iterator]:
        """Fuses loops that follow each other."""
        n = self._number(stage)
        return self._made(n, ["FU", n, [self._iter(n, i) for i in iters]])

    def reorder(self, stage: Staged, order: Sequence[Looped]) -> None:
        """Orders all loops."""
        n = self._number(stage)
        self.take(["RE", n, [self._iter(n, i) for i in order]])

    def _noted(self, stage: Staged, iterator: Looped, word: str) -> Iterator | list[Iterator]:
        n = self._number(stage)
        return self._made(n, ["AN", n, self._iter(n, iterator), ANNOTATIONS.index(word)])

    def unroll(self, stage: Staged, iterator: Looped, max_unroll: int | None = None) -> Iterator | list[Iterator]:
        """Unrolls a loop, unless it has more turns than `max_unroll`."""
        extent = self.stages[n := self._number(stage)].iters[place := self._iter(n, iterator)].extent
        if max_unroll is not None and extent is not None and extent > max_unroll:
            return self.stages[n].iters[place]
        return self._noted(n, place, "unroll")

    def vectorize(self, stage: Staged, iterator: Looped) -> Iterator | list[Iterator]:
        """Makes a loop a vector."""
        return self._noted(stage, iterator, "vectorize")

    def parallel(self, stage: Staged, iterator: Looped) -> Iterator | list[Iterator]:
        """Shares a loop out over threads."""
        return self._noted(stage, iterator, "parallel")

    def bind(self, stage: Staged, iterator: Looped, thread_name: str) -> Iterator | list[Iterator]:
        """Binds a loop to a thread of a grid. ValueError for names of none."""
        if thread_name not in ANNOTATIONS[4:11]:
            raise ValueError("Invalid thread_name: ", thread_name)
        return self._noted(stage, iterator, thread_name)

    def pragma(self, stage: Staged, iterator: Looped, pragma_type: str) -> None:
        """Notes something at a loop, as `auto_unroll_max_step$64`."""
        n = self._number(stage)
        self.take(["PR", n, self._iter(n, iterator), pragma_type])

    def storage_align(self, stage: Staged, iterator: Looped, factor: int, offset: int) -> None:
        """Aligns rows."""
        n = self._number(stage)
        self.take(["SA", n, self._iter(n, iterator), factor, offset])

    def compute_at(self, stage: Staged, target_stage: Staged, target_iter: Looped) -> None:
        """Computes a stage inside of a loop of another one."""
        target = self._number(target_stage)
        self.take(["CA", self._number(stage), target, self._iter(target, target_iter)])

    def compute_inline(self, stage: Staged) -> None:
        """Puts a stage into what reads it."""
        self.take(["CI", self._number(stage)])

    def compute_root(self, stage: Staged) -> None:
        """Computes a stage by itself."""
        self.take(["CR", self._number(stage)])

    def cache_read(self, stage: Staged, scope_name: str, reader_stages: Sequence[Staged]) -> Operation:
        """A stage that copies what readers read."""
        (made,) = self.take(["CHR", self._number(stage), scope_name, [self._number(r) for r in reader_stages]])
        return self.stages[made].op

    def cache_write(self, stage: Staged, scope_name: str) -> Operation:
        """A stage that computes what is written then."""
        (made,) = self.take(["CHW", self._number(stage), scope_name])
        return self.stages[made].op

    def rfactor(self, stage: Staged, iterator: Looped, factor_iter_id: int) -> Operation:
        """A stage that computes parts of a sum."""
        n = self._number(stage)
        (made,) = self.take(["RF", n, self._iter(n, iterator), factor_iter_id])
        return self.stages[made].op


def _stage(op: Operation) -> Stage:
    return Stage(op, [*op.axis, *op.reduce_axis] if isinstance(op, ComputeOp) else [])


_STEPS: dict[str, Callable[..., Sequence[int] | None]] = {
    "AN": State._annotate, "FU": State._fuse, "PR": State._pragma, "RE": State._reorder, "SP": State._split,
    "FSP": State._follow_split, "FFSP": State._follow_fused_split, "SA": State._storage_align, "CA": State._compute_at,
    "CI": State._compute_inline, "CR": State._compute_root, "CHR": State._cache_read, "CHW": State._cache_write,
    "RF": State._rfactor,
}  # fmt: skip


def python_code(state: State) -> str:
    """The steps of a state as lines of Python on the schedule `s`, for people."""
    lines = []
    for code, number, *args in state.transform_steps:
        lines.append(f"{_WORDS.get(code, code)}(stage {number}: {', '.join(map(str, args))})")
    return "\n".join(lines) + "\n"


_WORDS = {
    "AN": "annotate", "FU": "fuse", "PR": "pragma", "RE": "reorder", "SP": "split", "CA": "compute_at", "CI": "compute_inline",
    "CR": "compute_root", "CHR": "cache_read", "CHW": "cache_write", "RF": "rfactor", "SA": "storage_align",
    "FSP": "follow_split", "FFSP": "follow_fused_split",
}  # fmt: skip
