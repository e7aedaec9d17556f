"""Where numbers are quantised: calls of `relay.op.annotation.simulated_quantize` in front of operators that compute with integers.

A rule (call, args, context) is given a call of an operator and its arguments, of which those that follow quantised operators are
`QAnnotateExpr`; it gives the call in its place, as a `QAnnotateExpr` of what its numbers are, or None where the operator stays in floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np

from compass_core.dataclass import dataclass
from compassc.relay.builders import call
from compassc.relay.expr import Call, Constant, Expr
from compassc.relay.op import REGISTERED, registrar
from compassc.relay.operators import OPERATORS, Op, op_name
from compassc.relay.passes._functions import scalar
from compassc.relay.quantize.config import QAnnotateKind, current_qconfig
from compassc.relay.quantize.forward import Value, applied, plain
from compassc.relay.types import TensorType

SIMULATED = "relay.op.annotation.simulated_quantize"
INPUT, WEIGHT, ACTIVATION = QAnnotateKind.INPUT, QAnnotateKind.WEIGHT, QAnnotateKind.ACTIVATION


@dataclass(frozen=True, eq=False)
class QAnnotateExpr:
    """What a quantised operator gives, in floats that stand for integers, and what these are for operators behind it."""

    expr: Expr
    kind: QAnnotateKind

    def realize(self) -> Expr:
        """The value in floats."""
        return self.expr


@dataclass
class QAnnotateContext:
    """One function: what is quantised already, how many convolutions there were, whether quantisation has ended."""

    simulated: dict[tuple[int, QAnnotateKind, bool, str], Call] = field(default_factory=dict)
    convolutions: int = 0
    stopped: bool = False

    def attach(self, data: Expr, kind: QAnnotateKind, sign: bool = True, rounding: str = "round") -> Expr:
        """Data that are quantised as a kind; equal requests have one call. Its scale is not known before calibration."""
        key = (id(data), kind, sign, rounding)
        if key not in self.simulated:
            open_ = [scalar(np.nan, "float32") for _ in range(3)]
            self.simulated[key] = call(SIMULATED, data, *open_, kind=int(kind), sign=sign, rounding=rounding)
        return self.simulated[key]

    def stop(self) -> None:
        """Leave what follows in floats."""
        self.stopped = True

    def skips(self, e: Call) -> bool:
        """Whether the settings leave a call in floats. Convolutions are counted here."""
        config, name = current_qconfig(), op_name(e)
        if name == "nn.conv2d":
            self.convolutions += 1
        if self.stopped or config.debug_enabled_ops is not None and name not in config.debug_enabled_ops:
            return True
        skipped = config.skip_conv_layers or ()
        return (
            name == "nn.dense" and config.skip_dense_layer or name == "nn.conv2d" and self.convolutions - 1 in skipped
        )

    def annotated(self, e: Call, args: Sequence[Value]) -> Value | None:
        """What takes the place of a call."""
        assert isinstance(e.op, Op)
        rule: Rule | None = e.op.get_attr(_KEY)
        if rule is None or _in_other_types(e):
            return None
        return None if self.skips(e) else rule(e, args, self)


Rule = Callable[[Call, Sequence[Value], QAnnotateContext], "Value | None"]
_KEY = REGISTERED["annotate"]
register_annotate_function: Callable[..., Rule] = registrar(_KEY)


def _in_other_types(e: Call) -> bool:
    t = e.checked_type
    return isinstance(t, TensorType) and t.dtype != "float32"


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for name in names:
            OPERATORS[name].set_attr(_KEY, rule)
        return rule

    return register


def kind_of(value: Value) -> QAnnotateKind | None:
    """What a value is; None for one in floats."""
    return value.kind if isinstance(value, QAnnotateExpr) else None


def _as_input(value: Value, context: QAnnotateContext, kind: QAnnotateKind = INPUT) -> Expr:
    """A value as an input; what is one already stays as it is."""
    return plain(value) if kind_of(value) == INPUT else context.attach(plain(value), kind)


def _operand(value: Value) -> QAnnotateKind:
    return WEIGHT if isinstance(value, Constant) else INPUT


@_rule("nn.conv1d", "nn.conv2d", "nn.dense")
def _weighted(e: Call, args: Sequence[Value], context: QAnnotateContext) -> Value | None:
    data, weight = args
    if not isinstance(weight, Constant):
        return None
    return QAnnotateExpr(applied(e, [_as_input(data, context), context.attach(weight, WEIGHT)]), ACTIVATION)


@_rule("nn.batch_matmul")
def _product(e: Call, args: Sequence[Value], context: QAnnotateContext) -> Value | None:
    return QAnnotateExpr(applied(e, [_as_input(a, context, _operand(a)) for a in args]), ACTIVATION)


@_rule("multiply")
def _multiply(e: Call, args: Sequence[Value], context: QAnnotateContext) -> Value | None:
    if all(kind_of(a) is None for a in args):
        return None
    return QAnnotateExpr(applied(e, [_as_input(a, context, _operand(a)) for a in args]), ACTIVATION)


@_rule("add")
def _add(e: Call, args: Sequence[Value], context: QAnnotateContext) -> Value | None:
    kinds = [kind_of(a) for a in args]
    if kinds == [None, None]:
        return None
    made = [context.attach(plain(a), _operand(a)) if k is None else plain(a) for a, k in zip(args, kinds)]
    if kinds == [ACTIVATION, ACTIVATION]:
        made[1] = context.attach(made[1], INPUT)
    return QAnnotateExpr(applied(e, made), ACTIVATION)


@_rule(
    "reshape", "clip", "nn.relu", "strided_slice", "nn.batch_flatten", "transpose",
    "annotation.stop_fusion", "expand_dims", "squeeze",
)  # fmt: skip
def _same(e: Call, args: Sequence[Value], context: QAnnotateContext) -> Value | None:
    kind = kind_of(args[0])
    return None if kind is None else QAnnotateExpr(applied(e, [plain(a) for a in args]), kind)


@_rule("nn.avg_pool2d")
def _mean(e: Call, args: Sequence[Value], context: QAnnotateContext) -> Value | None:
    return None if kind_of(args[0]) is None else QAnnotateExpr(applied(e, [plain(args[0])]), ACTIVATION)


@_rule("nn.max_pool2d")
def _largest(e: Call, args: Sequence[Value], context: QAnnotateContext) -> Value | None:
    if kind_of(args[0]) is None:
        return None
    return QAnnotateExpr(applied(e, [_as_input(args[0], context)]), INPUT)


@_rule("annotation.cast_hint")
def _hint(e: Call, args: Sequence[Value], context: QAnnotateContext) -> Value | None:
    if kind_of(args[0]) is None:
        return args[0]
    return QAnnotateExpr(applied(e, [_as_input(args[0], context)]), INPUT)


@_rule("concatenate")
def _concatenate(e: Call, args: Sequence[Value], context: QAnnotateContext) -> Value | None:
    fields = args[0]
    if not isinstance(fields, list) or all(kind_of(a) is None for a in fields):
        return None
    made: list[Value] = [context.attach(plain(a), ACTIVATION) if kind_of(a) is None else plain(a) for a in fields]
    return QAnnotateExpr(applied(e, [plain(made)]), ACTIVATION)


@_rule("nn.global_avg_pool2d")
def _ends(e: Call, args: Sequence[Value], context: QAnnotateContext) -> Value | None:
    context.stop()
    return applied(e, [plain(a) for a in args])
