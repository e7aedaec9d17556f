"""Put scales of the results of convolutions and products into their weights.

Before: a typed module.
After: a convolution or product with weights, of which nothing else uses the result, is not multiplied by a scale of its
channels, directly or behind rectifiers (of positive constants), vectors that are added and sums of such results: weights and
vectors are multiplied instead, within rounding.
"""

from __future__ import annotations

from compassc.relay.builders import call
from compassc.relay.expr import Call, Expr, Function
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes import _scales as S
from compassc.relay.passes._functions import on_functions, rewritten, shape

NAME = "BackwardFoldScaleAxis"
LEVEL = 3
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    return on_functions(module, lambda f, _: _Backward(f).function())


class _Backward:
    """A function whose scales move up. `demands`: the scales that can be put into a value, by `id`; `made`: the function so far."""

    def __init__(self, f: Function) -> None:
        self.f, self.uses = f, S.users(f)
        self.demands: dict[int, S.Demand | None] = {}
        self.made: dict[int, Expr] = {}

    def function(self) -> Function:
        def folded(before: Expr, after: Expr) -> Expr:
            if isinstance(before, Call):
                self.demands[id(before)] = self._taken(before)
            self.made[id(before)] = self._unscaled(before) or after
            return self.made[id(before)]

        return rewritten(self.f, folded)

    def _demand(self, e: Expr) -> S.Demand | None:
        """The scales that can be put into a value that has one user."""
        return self.demands.get(id(e)) if self.uses[id(e)] == 1 else None

    def _taken(self, e: Call) -> S.Demand | None:
        weights = S.weights(e)
        if weights is not None:
            return S.Demand(weights.result_axes) if weights.for_result and S.is_same_type(e) else None
        if op_name(e) in S.RECTIFIERS:
            inner = self._demand(e.args[0])
            return inner.at_least(S.POSITIVE) if inner is not None else None
        if op_name(e) == "nn.bias_add" and S.is_known(e) and e.attrs is not None:
            inner = self._demand(e.args[0])
            return inner if inner is not None and inner.axes == (e.attrs["axis"] % len(shape(e)),) else None
        return self._taken_by_sum(e) if op_name(e) in S.SUMS else None

    def _taken_by_sum(self, e: Call) -> S.Demand | None:
        demands = [self._demand(a) for a in e.args]
        if all(demands):
            return S.both(*demands) if shape(e.args[0]) == shape(e.args[1]) else None
        for place, inner in enumerate(demands):
            if inner is not None and S.addend(e, inner.axes, place):
                return inner
        return None

    def _unscaled(self, e: Expr) -> Expr | None:
        """What takes the place of a product with a scale; None where its weights are not found."""
        if op_name(e) != "multiply" or not isinstance(e, Call):
            return None
        for data, scale in (e.args, e.args[::-1]):
            demand, value = self._demand(data), self.made[id(scale)]
            if demand is None or not demand.met_by(value) or shape(data) != shape(e):
                continue
            found = S.vector(scale, value, data, demand.axes)
            if found is not None:
                return self._scaled(data, found, demand.axes)
        return None

    def _scaled(self, root: Expr, scale: Expr, axes: S.Axes) -> Expr:
        """A value with a scale in its weights."""
        way: list[Call] = []
        todo = [root]
        while todo:
            e = todo.pop()
            assert isinstance(e, Call), "scales are taken by calls"
            way.append(e)
            if S.weights(e) is None:
                todo += [a for a in e.args if self._demand(a) is not None]
        made: dict[int, Expr] = {}
        for e in reversed(way):
            weights = S.weights(e)
            if weights is not None:
                data, weight = (self.made[id(a)] for a in e.args)
                made[id(e)] = S.scaled(e, (data, weight), scale, weights.for_result)
            else:
                inner = next(a for a in e.args if id(a) in made)
                factor = scale if op_name(e) == "nn.bias_add" else S.expanded(scale, inner, axes)
                args = [made.get(id(a)) or call("multiply", self.made[id(a)], factor) for a in e.args]
                made[id(e)] = Call(e.op, args, e.attrs, (), e.span)
        return made[id(root)]
