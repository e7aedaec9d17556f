"""Where integers of few bits go from kernel to kernel: what leaves a convolution with its bias, rectifier or pool is noted as an
input of what follows it, and kernels end there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compass_core.dataclass import dataclass
from compassc.relay.builders import call
from compassc.relay.expr import Call, Constant, Expr, Tuple
from compassc.relay.operators import op_name
from compassc.relay.quantize.config import current_qconfig
from compassc.relay.quantize.forward import Value, applied, plain


@dataclass(frozen=True, eq=False)
class QPartitionExpr:
    """A value whose kernel may take in what follows it."""

    expr: Expr

    def realize(self) -> Expr:
        """The value where its kernel ends."""
        hint = call("annotation.cast_hint", self.expr, dtype=current_qconfig().dtype_input)
        return call("annotation.stop_fusion", hint)


def unfinished(value: Value) -> Expr:
    """A value that is not noted as an input of what follows: its kernel goes on, or it is a result."""
    if isinstance(value, list):
        return Tuple([unfinished(v) for v in value])
    return value.expr if isinstance(value, QPartitionExpr) else plain(value)


def _convolution(e: Call, args: Sequence[Value]) -> Value | None:
    return QPartitionExpr(applied(e, [plain(a) for a in args]))


def _goes_on(e: Call, args: Sequence[Value]) -> Value | None:
    return QPartitionExpr(applied(e, [unfinished(args[0])])) if isinstance(args[0], QPartitionExpr) else None


def _with_operand(e: Call, args: Sequence[Value]) -> Value | None:
    """A sum or product: with a constant it goes on, as it does where both operands end."""
    ends = [isinstance(a, QPartitionExpr) for a in args]
    if ends == [True, False] and isinstance(args[1], Constant):
        return QPartitionExpr(applied(e, [unfinished(args[0]), args[1]]))
    return QPartitionExpr(applied(e, [plain(a) for a in args])) if all(ends) else None


RULES: dict[str, Callable[[Call, Sequence[Value]], Value | None]] = {
    "nn.conv2d": _convolution,
    **dict.fromkeys(("clip", "nn.relu", "nn.max_pool2d"), _goes_on),
    **dict.fromkeys(("add", "multiply"), _with_operand),
}


def parted(e: Call, args: Sequence[Value]) -> Value | None:
    """What takes the place of a call."""
    rule = RULES.get(op_name(e))
    return None if rule is None else rule(e, args)
