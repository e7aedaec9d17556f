"""Gradients of tensor expressions, backwards from a result: what each element of an input adds to it.

What an element read at some indices gives is summed over all points that read it. Where an index is a sum in which an axis stands
alone, that axis is solved for, and nothing is left to be summed along it.
"""

from __future__ import annotations

import math as python_math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from compass_core.dataclass import dataclass
from compassc.analysis.structure import variables
from compassc.ir import exprs as E
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Expr, IntImm, Var
from compassc.ir.iter_vars import IterKind, IterVar, Range
from compassc.ir.operators import binary, cast, immediate, kind_of
from compassc.ir.tensor_exprs import ProducerLoad, Reduce
from compassc.ir.visit import substitute
from compassc.te import math
from compassc.te.construct import compute
from compassc.te.reduce import all as all_of
from compassc.te.reduce import sum as sum_of
from compassc.te.tensor import ComputeOp, Operation, Tensor, post_order, tensor_of

Contribution = tuple[ProducerLoad, Expr]
"""An element that is read, and the derivative by it."""


def gradient(output: Tensor, inputs: Sequence[Tensor] | Tensor, head: Tensor | None = None) -> list[Tensor]:
    """The derivatives of a result by its inputs, one tensor for each: `head` times the Jacobian. `head`: of the shape PREFIX +
    `output.shape`, by default the identity (PREFIX is then `output.shape`); results are of PREFIX + the input's shape. What
    `output` does not depend on gives zeros. ExpressionError for reductions that are no sums, and for what has no derivative."""
    wanted = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    for t in (output, *wanted):
        if not isinstance(t, Tensor):
            raise ExpressionTypeError(f"gradient takes tensors, got a {type(t).__name__}")
    head = _identity(output) if head is None else head
    prefix = tuple(head.shape[: head.ndim - output.ndim])
    parts: dict[Tensor, list[Tensor]] = defaultdict(list)
    parts[output].append(head)
    order = post_order([output.op])
    below: set[Operation] = set()
    for op in order:
        if any(t in wanted or t.op in below for t in op.input_tensors):
            below.add(op)
    for op in reversed(order):
        results = [t for t in op.outputs if parts[t]]
        if not results or op not in below:
            continue
        if not isinstance(op, ComputeOp):
            raise ExpressionError(f"gradient: '{op.name}' is no te.compute, it has no derivative")
        if op.num_outputs > 1:
            raise ExpressionError(f"gradient: '{op.name}' has several results", "compute each in a stage of its own")
        above = _total(results[0], parts[results[0]])
        for read, derivative in _contributions(op):
            source = tensor_of(read)
            if kind_of(read).is_floating and (source in wanted or source.op in below):
                parts[source].append(_Pulled(op, read, derivative, above, prefix).tensor(source))
    return [_total(t, parts[t]) if parts[t] else _zeros(prefix, t) for t in wanted]


def _identity(t: Tensor) -> Tensor:
    one, zero = immediate(1, t.dtype), immediate(0, t.dtype)

    def element(*indices: Var) -> Expr:
        same = [binary("eq", a, b) for a, b in zip(indices, indices[t.ndim :])]
        return math.Select(all_of(*same), one, zero) if same else one

    made: Tensor = compute((*t.shape, *t.shape), lambda *i: element(*i), name="identity")
    return made


def _zeros(prefix: Sequence[Expr], t: Tensor) -> Tensor:
    made: Tensor = compute((*prefix, *t.shape), lambda *_: immediate(0, t.dtype), name=f"{t.op.name}.grad")
    return made


def _total(t: Tensor, parts: list[Tensor]) -> Tensor:
    """The sum of the parts, which is what they are from then on."""
    if len(parts) == 1:
        return parts[0]

    def element(*indices: Var) -> Expr:
        total: Expr = parts[0](*indices)
        for part in parts[1:]:
            total = binary("add", total, part(*indices))
        return total

    made: Tensor = compute(parts[0].shape, lambda *i: element(*i), name=f"{t.op.name}.grad")
    parts[:] = [made]
    return made


# ----------------------------------------------------------------------------------------------- derivatives of expressions


def _contributions(op: ComputeOp) -> list[Contribution]:
    """The derivatives of an element by all that it is computed of; those of a sum are to be summed over its axes."""
    body = op.body[0]
    if not isinstance(body, Reduce):
        return _derived(body, immediate(1, kind_of(body)))
    a, b = Var("a", body.dtype), Var("b", body.dtype)
    (joined,) = body.combiner.combine([a], [b])
    adds = isinstance(joined, E.Binary) and joined.op == "add" and {joined.a, joined.b} == {a, b}
    if not adds or body.init:
        raise ExpressionError(f"gradient: '{op.name}' reduces by '{body.combiner.name}', which is no plain sum")
    one, zero = immediate(1, kind_of(body)), immediate(0, kind_of(body))
    counted = one if isinstance(body.condition, IntImm) else math.Select(body.condition, one, zero)
    return _derived(body.source[0], counted)


def _derived(e: Expr, by: Expr) -> list[Contribution]:
    """The derivatives of an expression by the elements in it, times `by`. ExpressionError where there is none."""
    if isinstance(e, ProducerLoad):
        return [(e, by)]
    if isinstance(e, (Var, IntImm, E.FloatImm)) or not kind_of(e).is_floating:
        return []
    if isinstance(e, E.Cast):
        return _derived(e.value, cast(by, e.value.dtype)) if kind_of(e.value).is_floating else []
    if isinstance(e, E.Select):
        zero = immediate(0, kind_of(by))
        chosen, other = math.Select(e.condition, by, zero), math.Select(e.condition, zero, by)
        return [*_derived(e.true_value, chosen), *_derived(e.false_value, other)]
    if isinstance(e, E.Binary) and e.op in _BINARY:
        factors = _BINARY[e.op](e.a, e.b)
        return [c for x, f in zip((e.a, e.b), factors) for c in _derived(x, binary("mul", by, f))]
    if isinstance(e, E.Call) and e.op == "pow":
        x, y = e.args
        first = binary("mul", y, math.power(x, binary("sub", y, immediate(1, kind_of(y)))))
        second = binary("mul", e, math.log(x))
        return [*_derived(x, binary("mul", by, first)), *_derived(y, binary("mul", by, second))]
    if isinstance(e, E.Call) and e.op in _FLAT:
        return []
    if isinstance(e, E.Call) and e.op in _CALLS:
        (x,) = e.args
        return _derived(x, binary("mul", by, _CALLS[e.op](x, e)))
    if not any(isinstance(x, ProducerLoad) for x in _nodes(e)):
        return []
    raise ExpressionError(f"gradient: there is no derivative of {e}")


def _nodes(e: Expr) -> list[Expr]:
    return [e, *(x for child in e.children() if isinstance(child, Expr) for x in _nodes(child))]


def _number(e: Expr, value: float) -> Expr:
    return immediate(value, kind_of(e))


def _where(op: str, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    test = binary(op, a, b)
    one, zero = _number(a, 1), _number(a, 0)
    return math.Select(test, one, zero), math.Select(test, zero, one)


_BINARY: Mapping[str, Callable[[Expr, Expr], tuple[Expr, Expr]]] = {
    "add": lambda a, b: (_number(a, 1), _number(b, 1)),
    "sub": lambda a, b: (_number(a, 1), _number(b, -1)),
    "mul": lambda a, b: (b, a),
    "div": lambda a, b: (_number(a, 1) / b, -(a / (b * b))),
    "max": lambda a, b: _where("ge", a, b),
    "min": lambda a, b: _where("le", a, b),
}
_CALLS: Mapping[str, Callable[[Expr, Expr], Expr]] = {
    "exp": lambda x, e: e,
    "log": lambda x, e: _number(x, 1) / x,
    "tanh": lambda x, e: _number(x, 1) - e * e,
    "sqrt": lambda x, e: _number(x, 0.5) / e,
    "rsqrt": lambda x, e: _number(x, -0.5) * e / x,
    "abs": lambda x, e: math.Select(x >= _number(x, 0), _number(x, 1), _number(x, -1)),
    "sin": lambda x, e: math.cos(x),
    "cos": lambda x, e: -math.sin(x),
    "erf": lambda x, e: _number(x, 2 / python_math.sqrt(python_math.pi)) * math.exp(-(x * x)),
}
"""The derivatives of functions of one number, by it and by the value."""
_FLAT = ("floor", "ceil", "trunc", "rint")


# -------------------------------------------------------------------------------------------------- from elements to tensors


@dataclass
class _Pulled:
    """What one read of an operation adds to the gradient of what is read. `above`: the gradient of the result."""

    op: ComputeOp
    read: ProducerLoad
    derivative: Expr
    above: Tensor
    prefix: tuple[Expr, ...]

    def tensor(self, source: Tensor) -> Tensor:
        """It as a tensor of the prefix and the shape of the source."""
        made: Tensor = compute(
            (*self.prefix, *source.shape), lambda *i: self._element(i), name=f"{source.op.name}.{self.op.name}.grad"
        )
        return made

    def _element(self, indices: tuple[Var, ...]) -> Expr:
        before, places = indices[: len(self.prefix)], indices[len(self.prefix) :]
        left = {
            a.as_expr(): IterVar(a.dom, Var(a.var.name, a.dtype, a.var.nonneg), IterKind.REDUCTION)
            for a in (*self.op.axis, *self.op.reduce_axis)
        }
        values: dict[Var, Expr] = {old: new.as_expr() for old, new in left.items()}
        reads = [substitute(i, values) for i in self.read.indices]
        open_axes = {new.as_expr(): new for new in left.values()}
        conditions: list[Expr] = []
        solved: dict[Var, Expr] = {}
        for index, place in zip(reads, places):
            index = substitute(index, solved)
            found = _solved(index, place, open_axes)
            if found is None:
                conditions.append(binary("eq", index, place))
                continue
            axis, value = found
            dom = open_axes.pop(axis).dom
            assert dom is not None
            solved = {v: substitute(e, {axis: value}) for v, e in solved.items()} | {axis: value}
            conditions = [substitute(c, {axis: value}) for c in conditions]
            end = binary("add", dom.min, dom.extent)
            conditions += [binary("ge", value, dom.min), binary("lt", value, end)]
        final = {old: substitute(e, solved) for old, e in values.items()}
        row = [final[a.as_expr()] for a in self.op.axis]
        derivative = substitute(self.derivative, final)
        value = binary("mul", self.above(*before, *row), derivative)
        if conditions:
            value = math.Select(all_of(*conditions), value, immediate(0, kind_of(value)))
        axes = [self._resolved(a, final) for a in open_axes.values()]
        if not axes:
            return value
        made: Expr = sum_of(value, axis=axes)
        return made

    @staticmethod
    def _resolved(axis: IterVar, values: Mapping[Var, Expr]) -> IterVar:
        """An axis that is summed over. ExpressionError where its range depends on another one."""
        assert axis.dom is not None
        if any(v in values for e in (axis.dom.min, axis.dom.extent) for v in variables(e)):
            raise ExpressionError(f"gradient: the range of '{axis.name}' depends on another axis")
        return IterVar(Range.from_min_extent(axis.dom.min, axis.dom.extent), axis.var, IterKind.REDUCTION)


def _solved(index: Expr, place: Expr, axes: Mapping[Var, IterVar]) -> tuple[Var, Expr] | None:
    """The axis that `index == place` says the value of, with that: one that stands in it alone, once, added or subtracted."""
    for axis in axes:
        rest = _without(index, axis)
        if rest is not None and axis not in variables(rest[0]):
            other, sign = rest
            return axis, binary("sub", place, other) if sign > 0 else binary("sub", other, place)
    return None


def _without(e: Expr, axis: Var) -> tuple[Expr, int] | None:
    """What is left of a sum without an axis, and the sign that the axis has in it; None where it is no part of it."""
    if e is axis:
        return immediate(0, kind_of(e)), 1
    if not isinstance(e, E.Binary) or e.op not in ("add", "sub"):
        return None
    found = _without(e.a, axis)
    if found is not None:
        return binary(e.op, found[0], e.b), found[1]
    found = _without(e.b, axis)
    if found is None:
        return None
    return binary(e.op, e.a, found[0]), found[1] if e.op == "add" else -found[1]
