"""Have functions of straight-line programs give their gradients, too.

Before: a typed module whose functions consist of calls of operators, tuples, their items, constants and parameters.
After: each function gives `(result, (gradients of its parameters))`, as a chain of lets: values and zeros for their gradients, then
the sums from the result (ones) back to the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from compassc.ir.errors import ExpressionError
from compassc.relay.builders import call
from compassc.relay.errors import DiagnosticError
from compassc.relay.expr import Call, Constant, Expr, Function, Let, Tuple, TupleGetItem, Var
from compassc.relay.infer import infer_local
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.passes import infer_type
from compassc.relay.passes._functions import changed
from compassc.relay.primal_gradients import Gradient, gradient_of
from compassc.relay.types import TensorType, TupleType, Type
from compassc.relay.visit import post_order

NAME = "FirstOrderGradient"
LEVEL = 0
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    module = infer_type.run(module)
    made = {v: _Straight(f).function() if isinstance(f, Function) else f for v, f in module.functions.items()}
    return infer_type.run(changed(module, made))


def gradient_for(e: Call) -> Gradient:
    """The gradient of the operator that is called. DiagnosticError with its line where there is none."""
    assert isinstance(e.op, Op)
    found = gradient_of(e.op)
    if found is None:
        raise DiagnosticError(
            f"the operator {e.op.name} does not have a registered primal gradient",
            e.span,
            help="relay.op.register_gradient gives it one",
        )
    return found


class _Straight:
    """A function whose values and gradients get names. `values`, `grads`: the variables of an expression, by `id`."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.lets: list[tuple[Var, Expr]] = []
        self.values: dict[int, Expr] = {}
        self.grads: dict[int, Expr] = {}

    def function(self) -> Function:
        """The function that also gives gradients."""
        f = self.f
        if f.type_params:
            raise ExpressionError(
                "a polymorphic function has no first-order gradient", "give its types, or use relay.transform.gradient"
            )
        order = [e for e in post_order(f.body) if not isinstance(e, Op)]
        params = [p for p in f.params if all(p is not e for e in order)]
        for e in (*params, *order):
            self.values[id(e)] = self._value(e)
            self.grads[id(e)] = self._named(self._zeros(e.checked_type, self.values[id(e)]), e.checked_type, "grad")
        result = f.body.checked_type
        self.grads[id(f.body)] = self._named(self._ones(result, self.values[id(f.body)]), result, "grad")
        for e in reversed(order):
            self._back(e)
        grads = Tuple([self.grads[id(p)] for p in f.params])
        body: Expr = Tuple([self.values[id(f.body)], grads])
        for v, value in reversed(self.lets):
            body = Let(v, value, body)
        types = TupleType([p.checked_type for p in f.params])
        return Function(f.params, body, TupleType([result, types]), (), f.attrs)

    def _named(self, e: Expr, t: Type, name: str) -> Var:
        v = Var(name, t)
        v.typed(t)
        self.lets.append((v, e))
        return v

    def _value(self, e: Expr) -> Expr:
        """The value of an expression in the new function."""
        if isinstance(e, (Var, Constant)):
            return e
        if isinstance(e, Call) and isinstance(e.op, Op):
            made: Expr = Call(e.op, [self.values[id(a)] for a in e.args], e.attrs, e.type_args, e.span)
        elif isinstance(e, Tuple):
            made = Tuple([self.values[id(a)] for a in e.fields], e.span)
        elif isinstance(e, TupleGetItem):
            made = TupleGetItem(self.values[id(e.tuple_value)], e.index, e.span)
        else:
            raise ExpressionError(
                f"a {type(e).__name__} has no first-order gradient",
                "programs with control flow have one of relay.transform.gradient",
            )
        return self._named(made, e.checked_type, "x")

    def _zeros(self, t: Type, value: Expr) -> Expr:
        return self._filled(t, value, "zeros_like")

    def _ones(self, t: Type, value: Expr) -> Expr:
        return self._filled(t, value, "ones_like")

    def _filled(self, t: Type, value: Expr, name: str) -> Expr:
        if isinstance(t, TupleType):
            return Tuple([self._filled(f, TupleGetItem(value, i), name) for i, f in enumerate(t.fields)])
        if not isinstance(t, TensorType):
            raise ExpressionError(
                f"a value of type {t} has no first-order gradient", "tensors and tuples of them have one"
            )
        return call(name, value)

    def _add(self, e: Expr, grad: Expr) -> None:
        """Add to the gradient of an expression."""
        t = e.checked_type
        self.grads[id(e)] = self._named(_sum(t, self.grads[id(e)], grad), t, "grad")

    def _back(self, e: Expr) -> None:
        """Add what a value owes to the gradients of what it was made of."""
        grad = self.grads[id(e)]
        if isinstance(e, Tuple):
            for i, f in enumerate(e.fields):
                self._add(f, TupleGetItem(grad, i))
        elif isinstance(e, TupleGetItem):
            t = e.tuple_value.checked_type
            assert isinstance(t, TupleType)
            known = self.grads[id(e.tuple_value)]
            fields: Sequence[Expr] = [TupleGetItem(known, i) for i in range(len(t.fields))]
            added = [call("add", f, grad) if i == e.index else f for i, f in enumerate(fields)]
            self.grads[id(e.tuple_value)] = self._named(Tuple(added), t, "grad")
        elif isinstance(e, Call):
            now = Call(e.op, [self.values[id(a)] for a in e.args], e.attrs, e.type_args, e.span)
            infer_local(now, infer_type.ModuleDefinitions(IRModule()))
            for a, g in zip(e.args, gradient_for(e)(now, grad)):
                self._add(a, g)


def _sum(t: Type, a: Expr, b: Expr) -> Expr:
    """The sum of two values of a type."""
    if isinstance(t, TupleType):
        return Tuple([_sum(f, TupleGetItem(a, i), TupleGetItem(b, i)) for i, f in enumerate(t.fields)])
    return call("add", a, b)
