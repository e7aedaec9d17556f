"""Templates: schedules of tensor expressions with knobs, in the terms of AutoTVM.

A template is a function `f(cfg, *args)` that computes something, defines its knobs on `cfg` and uses them:

    @template
    def add(cfg, n):
        a = te.placeholder((n,), name="a")
        b = te.compute((n,), lambda i: a[i] + 1, name="b")
        s = te.create_schedule(b)
        cfg.define_split("tile", b.op.axis[0], num_outputs=2)
        outer, inner = cfg["tile"].apply(s, b, b.op.axis[0])
        s[b].bind(outer, te.thread_axis("threadIdx.x"))
        return s, [a, b]

    task = add.task(1024, target="X2_1204")

It is run once to learn what the knobs are, with the first value of each, and once for each candidate. A candidate has a
value of each knob by name: of a split `"-1,4,8"` (the first size follows from the axis), of an order `"0,2,1"`, of
annotations `"none,unroll,vec"`, else the value itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations, product
from math import prod
from typing import Any, overload

from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compassc import topi
from compassc.ir.exprs import IntImm
from compassc.ir.iter_vars import IterVar
from compassc.te.schedule import Schedule
from compassc.te.tensor import Tensor
from compassc.topi.schedules import Knobs, inputs_of
from compassc.tuning.expressions import ExpressionTask
from compassc.tuning.space import Candidate, ParameterSpace

Made = tuple[Schedule, Sequence[Tensor]]
Function = Callable[..., Made]
_MOST = 4096
"""Values of a knob: more are thinned out."""


def factors_of(number: int) -> list[int]:
    """The numbers that divide a number, the least first."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


@dataclass(frozen=True)
class SplitEntity:
    """How an axis is split: the size of each loop, the outermost first."""

    sizes: tuple[int, ...]

    def apply(self, s: Schedule, op: object, axis: IterVar) -> list[IterVar]:
        """The loops that the axis is split into."""
        made, rest = [], axis
        for size in reversed(self.sizes[1:]):
            rest, inner = s[op].split(rest, factor=size)
            made.append(inner)
        return [rest, *reversed(made)]


@dataclass(frozen=True)
class ReorderEntity:
    """An order of loops: `perm[i]` is the number of the loop that comes at place `i`."""

    perm: tuple[int, ...]

    def apply(self, s: Schedule, op: object, axes: Sequence[IterVar]) -> list[IterVar]:
        """The loops in their new order."""
        ordered = [axes[i] for i in self.perm]
        s[op].reorder(*ordered)
        return ordered


@dataclass(frozen=True)
class AnnotateEntity:
    """What becomes of loops: `none`, `unroll` or `vec` for each."""

    anns: tuple[str, ...]

    def apply(self, s: Schedule, op: object, axes: Sequence[IterVar]) -> list[IterVar]:
        for axis, word in zip(axes, self.anns):
            if word != "none":
                (s[op].unroll if word == "unroll" else s[op].vectorize)(axis)
        return list(axes)


@dataclass(frozen=True)
class OtherEntity:
    """A value: `val`."""

    val: object


Entity = SplitEntity | ReorderEntity | AnnotateEntity | OtherEntity


class Configuration:
    """The knobs of a template while it runs: `define_...` names one and its values, `cfg[name]` is the one chosen."""

    def __init__(self, chosen: Mapping[str, object] | None = None) -> None:
        self._chosen = chosen
        self.parameters: dict[str, tuple[object, ...]] = {}
        self._entities: dict[str, Entity] = {}

    def __getitem__(self, name: str) -> Any:
        """The entity of a knob. UsageError where it was not defined."""
        if name not in self._entities:
            known = ", ".join(self._entities) or "none"
            raise UsageError(f"the template has no knob '{name}'; defined so far: {known}", code="tuning-space")
        return self._entities[name]

    def __setitem__(self, name: str, entity: Entity) -> None:
        self._entities[name] = entity

    def __contains__(self, name: str) -> bool:
        return name in self._entities

    def define_split(
        self,
        name: str,
        axis: IterVar | int,
        num_outputs: int = 2,
        policy: str = "factors",
        max_factor: int | None = None,
        filter: Callable[[SplitEntity], bool] | None = None,
        candidate: Sequence[Sequence[int]] | None = None,
    ) -> list[IterVar]:
        """Ways to split an axis into so many loops. `policy`: sizes are `factors` of the extent, powers of two
        (`power2`: what does not divide is guarded), or those of `candidate`, the first one -1. `max_factor`: of each
        loop but the first. `filter`: whether a split is one."""
        extent = _extent(name, axis)
        if policy == "candidate":
            inner = [tuple(c[1:]) for c in candidate or ()]
        elif policy in ("factors", "power2"):
            inner = list(_splits(extent, num_outputs - 1, policy, max_factor or extent))
        else:
            raise UsageError(
                f"knob '{name}': there is no policy '{policy}'",
                code="tuning-space",
                help="factors, power2 or candidate",
            )
        found = [SplitEntity((-(-extent // prod(sizes)), *sizes)) for sizes in inner]
        kept = [e for e in found if filter is None or filter(e)]
        self._define(name, {",".join(map(str, (-1, *e.sizes[1:]))): e for e in kept})
        return [axis] * num_outputs if isinstance(axis, IterVar) else []

    def define_knob(self, name: str, candidate: Sequence[object]) -> None:
        """A knob with the given values: numbers, words, truth values."""
        self._define(name, {v: OtherEntity(v) for v in candidate})

    def define_reorder(
        self,
        name: str,
        axes: Sequence[IterVar],
        policy: str = "all",
        candidate: Sequence[Sequence[IterVar]] | None = None,
    ) -> Sequence[IterVar]:
        """Orders of loops: `all` of them, those of `candidate`, or the one that there is (`identity`)."""
        count = range(len(axes))
        orders: list[tuple[int, ...]] = [tuple(count)]
        if policy == "all":
            orders = list(permutations(count))
        elif policy == "candidate":
            orders = [tuple(next(i for i in count if axes[i] is a) for a in order) for order in candidate or ()]
        self._define(name, {",".join(map(str, o)): ReorderEntity(o) for o in orders})
        return axes

    def define_annotate(
        self,
        name: str,
        axes: Sequence[IterVar],
        policy: str = "try_unroll_vec",
        candidate: Sequence[Sequence[str]] | None = None,
    ) -> Sequence[IterVar]:
        """What becomes of loops: `unroll` or `vec` all of them, `try_unroll` or `try_vec` each or not, `try_unroll_vec`
        unroll any and make vectors of the last, or those of `candidate`."""
        words: dict[str, list[tuple[str, ...]]] = {
            "unroll": [("unroll",)] * len(axes),
            "vec": [*[("none",)] * (len(axes) - 1), ("vec",)],
            "try_unroll": [("none", "unroll")] * len(axes),
            "try_vec": [*[("none",)] * (len(axes) - 1), ("none", "vec")],
            "try_unroll_vec": [*[("none", "unroll")] * (len(axes) - 1), ("none", "unroll", "vec")],
        }
        choices = [tuple(c) for c in candidate or ()] if policy == "candidate" else list(product(*words[policy]))
        self._define(name, {",".join(c): AnnotateEntity(c) for c in choices})
        return axes

    def _define(self, name: str, entities: Mapping[object, Entity]) -> None:
        if name in self.parameters:
            raise UsageError(f"knob '{name}' is defined twice", code="tuning-space")
        if not entities:
            raise UsageError(f"knob '{name}' has no values", code="tuning-space", help="relax its filter or policy")
        values = list(entities)
        thinned = values if len(values) <= _MOST else values[:: -(-len(values) // _MOST)]
        self.parameters[name] = tuple(thinned)
        wanted = thinned[0] if self._chosen is None else self._chosen.get(name)
        if wanted not in entities:
            raise UsageError(f"knob '{name}' has no value {wanted!r}", code="tuning-space")
        self._entities[name] = entities[wanted]


def _extent(name: str, axis: IterVar | int) -> int:
    if isinstance(axis, int):
        return axis
    if axis.dom is None or not isinstance(axis.dom.extent, IntImm):
        raise UsageError(f"knob '{name}': the extent of '{axis.name}' is no number", code="tuning-space")
    return axis.dom.extent.value


def _splits(extent: int, count: int, policy: str, most: int) -> Iterator[tuple[int, ...]]:
    """The sizes of the inner loops of each way to split."""
    if not count:
        yield ()
        return
    if policy == "power2":
        sizes = [1 << i for i in range(max(extent - 1, 0).bit_length() + 1)]
    else:
        sizes = factors_of(extent)
    for size in sizes:
        if size <= most and (policy == "power2" or extent % size == 0):
            rest = -(-extent // size)
            for others in _splits(rest, count - 1, policy, most):
                yield (*others, size)


@dataclass(frozen=True)
class Template:
    """A function of a configuration and arguments that gives a schedule and the kernel's parameters."""

    function: Function
    name: str

    def __call__(self, cfg: Configuration, *args: object) -> Made:
        return self.function(cfg, *args)

    def task(self, *args: object, target: str, name: str | None = None) -> TemplateTask:
        """The task for some arguments. What the template raises with the first value of each knob is raised."""
        return TemplateTask(self, args, target, name)


@overload
def template(function: Function, name: str | None = None) -> Template: ...
@overload
def template(function: None = None, name: str | None = None) -> Callable[[Function], Template]: ...
def template(function: Function | None = None, name: str | None = None) -> Template | Callable[[Function], Template]:
    """Makes a template of a function."""
    if function is None:
        return lambda f: Template(f, name or f.__name__)
    return Template(function, name or function.__name__)


class TemplateTask(ExpressionTask):
    """A template with arguments."""

    def __init__(self, made: Template, args: Sequence[object], target: str, name: str | None = None) -> None:
        self.template, self.args = made, tuple(args)
        cfg = Configuration()
        _, tensors = made(cfg, *args)
        super().__init__(name or made.name, tensors, target, ParameterSpace(cfg.parameters))
        self._default = {n: values[0] for n, values in cfg.parameters.items()}

    @property
    def default(self) -> Candidate:
        return self._default

    def made(self, candidate: Candidate) -> Made:
        schedule, tensors = self.template(Configuration(candidate), *self.args)
        if [(t.ndim, t.dtype) for t in tensors] != [(t.ndim, t.dtype) for t in self.tensors]:
            raise UsageError(f"template '{self.template.name}': its parameters depend on knobs", code="tuning-space")
        return schedule, tensors


def tasks_of_template(made: Template, target: str, sizes: Mapping[str, object]) -> list[TemplateTask]:
    """The task of a template in a file; its parameters have values in `sizes`, or defaults. UsageError where one has
    neither."""
    parameters = list(inspect.signature(made.function).parameters.values())[1:]
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in sizes]
    if missing:
        raise UsageError(
            f"template '{made.name}' needs values of {', '.join(missing)}",
            code="tuning-task",
            help=f"--set {missing[0]}=...",
        )
    return [made.task(*(sizes.get(p.name, p.default) for p in parameters), target=target)]


_KNOBS = {
    "lanes": (0, 4, 8, 16, 32, 64),
    "chunk": (0, 64, 256, 1024, 2048, 4096),
    "rows": (0, 1, 2, 4, 8),
    "columns": (0, 1, 2, 4, 8),
    "cache": (True, False),
}
"""The knobs of topi's schedules for NPUs that are tried (`topi.schedules.Knobs`), the first what they are by default."""


class KnobsTask(ExpressionTask):
    """The default schedule of operators (`topi.schedule`) with its knobs."""

    def __init__(self, name: str, outs: Tensor | Sequence[Tensor], target: str) -> None:
        listed = [outs] if isinstance(outs, Tensor) else list(outs)
        super().__init__(name, [*inputs_of(listed), *listed], target, ParameterSpace(_KNOBS))

    @property
    def default(self) -> Candidate:
        return {name: values[0] for name, values in _KNOBS.items()}

    def made(self, candidate: Candidate) -> Made:
        return topi.schedule(self.outputs, self.target, Knobs(**candidate)), self.tensors
