"""Put scales of the data of convolutions and products into their weights.

Before: a typed module.
After: what only convolutions and products with weights use is not multiplied by a scale of its channels, directly or in
front of rectifiers (positive constants) and vectors that are added (constants without zeros): weights are multiplied and
vectors are divided instead, within rounding.
"""

from __future__ import annotations

from compassc.relay.builders import call
from compassc.relay.expr import Call, Expr, Function
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes import _scales as S
from compassc.relay.passes._functions import on_functions, shape
from compassc.relay.visit import children, is_primitive, post_order, with_children

NAME = "ForwardFoldScaleAxis"
LEVEL = 3
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    return on_functions(module, lambda f, _: _Forward(f).function())


class _Forward:
    """A function whose scales move down. `demands`: the scales that all users of a value take, by `id`; `scales`: those that
    a value lacks where its users multiply by them."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.order = list(post_order(f, is_primitive))
        self.demands: dict[int, S.Demand | None] = {}
        self.scales: dict[int, Expr] = {}
        self.made: dict[int, Expr] = {}

    def function(self) -> Function:
        for e in reversed(self.order):
            own = self.demands.get(id(e))
            inner = children(e) if e is self.f or not is_primitive(e) else ()
            for child, wanted in zip(inner, self._asked(e, own) or [None] * len(inner)):
                known = self.demands.get(id(child), wanted)
                self.demands[id(child)] = S.both(known, wanted)
        for e in self.order:
            self.made[id(e)] = self._one(e)
        made = self.made[id(self.f)]
        assert isinstance(made, Function), "a function stays one"
        return made

    def _asked(self, e: Expr, own: S.Demand | None) -> list[S.Demand | None] | None:
        """What a call asks of the scales of its callee and arguments; None for nothing."""
        weights = S.weights(e)
        if weights is not None:
            assert isinstance(e, Call)
            return [None, S.Demand(weights.data_axes) if weights.for_data and S.is_same_type(e) else None, None]
        if own is None or not isinstance(e, Call):
            return None
        if op_name(e) in S.RECTIFIERS:
            return [None, own.at_least(S.POSITIVE)]
        if op_name(e) in S.SUMS:
            inner = next((i for i in (0, 1) if S.addend(e, own.axes, i)), None)
            return [None, *(own.at_least(S.NOT_ZERO) if i == inner else None for i in (0, 1))]
        return None

    def _one(self, e: Expr) -> Expr:
        """A value without the scale that its users take, which is noted."""
        args = [self.made[id(c)] for c in children(e)] if e is self.f or not is_primitive(e) else []
        demand = self.demands.get(id(e))
        if not isinstance(e, Call):
            return with_children(e, args) if args else e
        if demand is not None and op_name(e) == "multiply" and (data := self._scaled(e, demand, args[1:])) is not None:
            return data
        place = next((i for i, a in enumerate(e.args) if id(a) in self.scales and self._takes(e)), None)
        if place is None:
            return with_children(e, args)
        scale = self.scales[id(e.args[place])]
        weights = S.weights(e)
        if weights is not None:
            return S.scaled(e, (args[1], args[2]), scale, weights.for_data)
        self.scales[id(e)] = scale
        if op_name(e) in S.SUMS:
            assert demand is not None
            divisor = S.expanded(scale, e.args[place], demand.axes)
            args[2 - place] = call("divide", args[2 - place], divisor)
        return with_children(e, args)

    def _scaled(self, e: Call, demand: S.Demand, args: list[Expr]) -> Expr | None:
        """What a product scales, of which the scale is noted; None where its users take none of the factors."""
        for data in (0, 1):
            value = args[1 - data]
            found = S.vector(e.args[1 - data], value, e.args[data], demand.axes)
            if found is not None and shape(e.args[data]) == shape(e) and demand.met_by(value):
                self.scales[id(e)] = found
                return args[data]
        return None

    def _takes(self, e: Call) -> bool:
        return S.weights(e) is not None or op_name(e) in (*S.RECTIFIERS, *S.SUMS)
