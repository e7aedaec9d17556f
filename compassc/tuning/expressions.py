"""What tasks of tensor expressions share: their workload, arguments, right results, and programs of schedules."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.exprs import Expr, IntImm, Var
from compassc.ir.tensor_exprs import ProducerLoad, Reduce
from compassc.te.errors import LowerError, ScheduleError
from compassc.te.schedule import Schedule, Trace
from compassc.te.tensor import ComputeOp, PlaceholderOp, Tensor, post_order, tensor_of
from compassc.topi.schedules import inputs_of
from compassc.tuning.space import Candidate, Space
from compassc.tuning.task import Infeasible, Program, Tolerance, Workload

_NEAR = {"float16": (1e-2, 2e-3), "bfloat16": (4e-2, 2e-2), "float32": (1e-3, 1e-4)}
"""By type how far results may be off: of the element, and of the largest one. Sums come in any order."""


class ExpressionTask:
    """A task whose programs are schedules of the tensor expressions that compute some tensors of others.

    `tensors`: the parameters of the kernel in order, those that are computed included; their sizes are numbers.
    """

    def __init__(self, name: str, tensors: Sequence[Tensor], target: str, space: Space) -> None:
        """ExpressionTypeError where nothing is computed, or a size is open."""
        self.name, self.tensors, self.target = name, list(tensors), target
        self.space = space
        self.outputs = [t for t in self.tensors if not isinstance(t.op, PlaceholderOp)]
        if not self.outputs:
            raise ExpressionTypeError(f"nothing of the task '{name}' is computed: give the outputs, too")
        for t in self.tensors:
            if not all(isinstance(d, IntImm) for d in t.shape):
                raise ExpressionTypeError(f"'{t.name}' of the task '{name}' has an open size; tuning needs numbers")

    def made(self, candidate: Candidate) -> tuple[Schedule, Sequence[Tensor]]:
        """The schedule of a candidate, and its tensors in the order of `tensors`."""
        raise NotImplementedError

    @property
    def default(self) -> Candidate | None:
        return None

    def program(self, candidate: Candidate) -> Program:
        """The kernel of a candidate. Infeasible where its schedule is not legal, or has no program on the target."""
        try:
            schedule, tensors = self.made(candidate)
            return Program(te.lower(schedule, tensors, name=self.kernel_name, target=self.target))
        except (LowerError, ScheduleError) as error:
            raise Infeasible(error.message.splitlines()[0]) from None

    @property
    def kernel_name(self) -> str:
        made = "".join(c if c.isalnum() else "_" for c in self.name).strip("_")
        return made if made[:1].isalpha() else f"k_{made}"

    @cached_property
    def workload(self) -> Workload:
        return workload_of(self.outputs, self.target, self.name)

    @cached_property
    def _given(self) -> list[Array]:
        rng = np.random.default_rng(0)
        return [_values(t, rng) if isinstance(t.op, PlaceholderOp) else _empty(t) for t in self.tensors]

    def __getstate__(self) -> dict[str, object]:
        """Without arrays, which can be made again."""
        return {name: value for name, value in vars(self).items() if name not in ("_given", "_right")}

    def arguments(self) -> list[Array]:
        """Random inputs, the same at each call, and outputs of zeros."""
        return [a.copy() for a in self._given]

    @cached_property
    def _right(self) -> dict[int, Array]:
        """What this machine computes of the expressions, in plain loops."""
        run = te.build(te.create_schedule(self.outputs), self.tensors, "llvm", name="reference")
        arguments = self.arguments()
        run(*arguments)
        return {i: a for i, (a, t) in enumerate(zip(arguments, self.tensors)) if t in self.outputs}

    def expected(self) -> Mapping[int, Array]:
        return self._right

    @property
    def tolerance(self) -> Tolerance:
        near = [_NEAR.get(str(t.dtype), (0.0, 0.0)) for t in self.outputs]
        largest = max((float(np.abs(a.astype("float64")).max()) for a in self._right.values() if a.size), default=0.0)
        return Tolerance(max(r for r, _ in near), max(a for _, a in near) * largest)


def workload_of(outputs: Sequence[Tensor], target: str, name: str) -> Workload:
    """What is computed, whatever the order of the kernel's parameters: the tensors that are given, in order of appearance,
    and the outputs."""
    listed = [*inputs_of(outputs), *outputs]
    kinds = tuple(str(t.dtype) for t in listed)
    return Workload(name, structure_of(outputs), tuple(map(_shape, listed)), kinds, target)


def replayed(outputs: Sequence[Tensor], steps: object) -> Schedule:
    """The schedule of a trace, as a candidate keeps it. ScheduleError where it is none of these expressions."""
    text = json.dumps({"format": "compassc-trace/1", "steps": steps})
    return te.create_schedule(list(outputs)).replayed(Trace.from_json(text))


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(d.value for d in tensor.shape if isinstance(d, IntImm))


def _values(tensor: Tensor, rng: np.random.Generator) -> Array:
    """Random content: whole numbers of all sizes for bytes, small ones for wider types, reals around 0."""
    kind, shape = str(tensor.dtype), _shape(tensor)
    if tensor.dtype.is_floating:
        return rng.normal(0, 1, shape).astype(_numpy(kind))
    if tensor.dtype.is_bool:
        return rng.integers(0, 2, shape).astype("bool")
    low, high = tensor.dtype.integer_range()
    return rng.integers(max(low, -128), min(high, 127), shape, endpoint=True).astype(kind)


def _empty(tensor: Tensor) -> Array:
    return np.zeros(_shape(tensor), _numpy(str(tensor.dtype)))


def _numpy(kind: str) -> Any:
    if kind != "bfloat16":
        return np.dtype(kind)
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def structure_of(outputs: Sequence[Tensor]) -> str:
    """A hash of what is computed: equal for expressions that differ in names and sizes alone."""
    seen: dict[object, str] = {}
    lines = []
    for op in post_order([t.op for t in outputs]):
        for i, t in enumerate(op.outputs):
            seen[t] = f"t{len(seen)}"
            lines.append(f"{seen[t]}: {t.dtype} {t.ndim} {type(op).__name__} {i}")
        if isinstance(op, ComputeOp):
            for axis in (*op.axis, *op.reduce_axis):
                seen[axis.as_expr()] = f"a{len(seen)}"
            lines += [_shown(e, seen) for e in op.body]
        elif not isinstance(op, PlaceholderOp):
            lines.append(repr(op))
    lines.append(" ".join(seen[t] for t in outputs))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]


def _shown(e: Expr, seen: Mapping[object, str]) -> str:
    if isinstance(e, Var):
        return seen.get(e, e.name)
    if isinstance(e, ProducerLoad):
        return f"{seen[tensor_of(e)]}[{', '.join(_shown(i, seen) for i in e.indices)}]"
    if isinstance(e, Reduce):
        axes = " ".join(seen[a.as_expr()] for a in e.axis)
        parts = [*e.source, e.condition, *e.init, *e.combiner.result]
        return f"{e.combiner.name}({axes}; {', '.join(_shown(x, seen) for x in parts)}; {e.value_index})"
    plain = [str(getattr(e, f)) for f in e.fields if not _nested(getattr(e, f))]
    return f"{type(e).__name__}({', '.join([*plain, *(_shown(c, seen) for c in e.children())])})"


def _nested(value: object) -> bool:
    return isinstance(value, Expr) or (isinstance(value, tuple) and any(isinstance(v, Expr) for v in value))
