"""From floats that stand for integers to integers: quantised operators compute in them, and what leaves them is a cast and a product.

Each value knows the largest magnitude that its integers can have, so that no sum, shift or product leaves its type; where one
would, it is computed in wider integers, at a coarser scale, or refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import ceil, frexp, prod

import numpy as np

from compass_core.dataclass import dataclass
from compassc.ir.dtypes import dtype as data_type
from compassc.ir.errors import ExpressionError
from compassc.relay.builders import call
from compassc.relay.expr import Call, Constant, Expr
from compassc.relay.operators import op_name
from compassc.relay.ops.fixed_point import Requantization
from compassc.relay.passes import fold_constant
from compassc.relay.passes._functions import scalar, tensor
from compassc.relay.qnn.arithmetic import scaled
from compassc.relay.quantize.annotate import SIMULATED
from compassc.relay.quantize.config import QAnnotateKind, current_qconfig
from compassc.relay.quantize.forward import Value, applied, plain

WORD = 2**31 - 1


def _room(dtype: str) -> int:
    """The largest number of a type."""
    return int(data_type(dtype).range()[1])


@dataclass(frozen=True, eq=False)
class Whole:
    """Integers q of a type that mean scale * q, none larger than `reach` in magnitude."""

    expr: Expr
    scale: float
    dtype: str
    reach: int
    reals: list[Expr] = field(default_factory=list)

    def realize(self) -> Expr:
        """What they mean, in float32."""
        if not self.reals:
            real = call("cast", self.expr, dtype="float32")
            self.reals.append(call("multiply", real, scalar(self.scale, "float32")))
        return self.reals[0]

    def cast(self, dtype: str) -> Whole:
        """The same integers in another type that has room for them. ExpressionError where it has none."""
        if self.reach > _room(dtype):
            raise ExpressionError(
                f"numbers up to {self.reach} are beyond {dtype}",
                "use wider types or fewer bits in relay.quantize.qconfig",
            )
        if dtype == self.dtype:
            return self
        return Whole(fold_constant.fold(call("cast", self.expr, dtype=dtype)), self.scale, dtype, self.reach)


def _known(e: Expr) -> float:
    assert isinstance(e, Constant)
    found = float(e.array)
    if np.isnan(found):
        raise ExpressionError("the scale of a number is not known", "run relay.quantize.calibrate before realize")
    return found


# -------------------------------------------------------------------------------------------------------- other scales


def _shifted(x: Whole, bits: int) -> Whole:
    """Integers times 2^bits, in a type that has room."""
    if abs(bits) > 60:
        raise ExpressionError(f"scales of operands are 2^{abs(bits)} apart", "leave the operator in floats")
    half = 1 << (-bits - 1) if bits < 0 and current_qconfig().round_for_shift else 0
    reach = (x.reach + half >> -bits) + 1 if bits < 0 else x.reach << bits
    kind = "int32" if max(reach, x.reach + half) <= WORD else "int64"
    e = x.cast(kind).expr
    if bits > 0:
        e = call("left_shift", e, scalar(bits, kind))
    else:
        e = call("right_shift", call("add", e, scalar(half, kind)) if half else e, scalar(-bits, kind))
    return Whole(e, x.scale / 2.0**bits, kind, reach)


def _multiplied(x: Whole, factor: float) -> Whole:
    """Integers times a factor by fixed-point arithmetic."""
    made = scaled(x.cast("int32").expr, np.float64(factor), Requantization(rounding=current_qconfig().rounding))
    return Whole(made, x.scale / factor, "int32", ceil(x.reach * factor) + 1)


def rescaled(x: Whole, scale: float, limit: int, dtype: str) -> Whole:
    """Integers of another scale, the nearest ones up to a limit, in a type."""
    factor = x.scale / scale
    part, exponent = frexp(factor)
    most = min(ceil(limit / factor) + 1, int((WORD - 1) / factor))
    if x.reach > most and factor > 1:  # what is limited behind the product is limited before it, too
        x = Whole(call("clip", x.expr, a_min=-most, a_max=most), x.scale, x.dtype, most)
    if factor != 1:
        x = _shifted(x, exponent - 1) if part == 0.5 else _multiplied(x, factor)
    if x.reach > limit:
        x = Whole(call("clip", x.expr, a_min=-limit, a_max=limit), scale, x.dtype, limit)
    return Whole(x.cast(dtype).expr, scale, dtype, x.reach)


def _quantised(x: Expr, scale: float, low: float, high: float, dtype: str) -> Whole:
    """Reals as integers; what is no number as 0."""
    room = _room(dtype)
    # float32 has not all integers of 32 bits: the largest one that it has within the type
    limit = int(high) if high <= room else int(np.nextafter(np.float32(room), np.float32(0)))
    if high > np.float32(room):
        raise ExpressionError(f"numbers up to {high:.0f} are beyond {dtype}", "use fewer bits, or a wider type")
    whole = call("round", call("multiply", x, scalar(1 / scale, "float32")))
    bounded = call("clip", whole, a_min=max(low, -limit), a_max=limit)
    number = call("where", call("isnan", x), scalar(0, "float32"), bounded)
    return Whole(fold_constant.fold(call("cast", number, dtype=dtype)), scale, dtype, limit)


def _simulated(e: Call, args: Sequence[Value]) -> Value:
    assert e.attrs is not None
    scale, low, high = map(_known, e.args[1:])
    kind = QAnnotateKind(e.attrs.get_int("kind"))
    if kind == QAnnotateKind.IDENTITY:
        return args[0]
    dtype, given = current_qconfig().get_dtype_by_kind(kind), args[0]
    if isinstance(given, Whole) and low < 0:
        return rescaled(given, scale, int(high), dtype)
    return _quantised(plain(given), scale, low, high, dtype)


# ----------------------------------------------------------------------------------------------------------- operators


def _weights_reach(e: Call, weight: Whole) -> int:
    """What the magnitudes of the weights of a result add up to, at most."""
    extents = tensor(e.args[1]).concrete_shape
    layout: str = "OI" if e.attrs is None else e.attrs.get("kernel_layout", "OI")
    if isinstance(weight.expr, Constant):
        found = np.abs(weight.expr.array.astype(np.int64))
        own = layout.index("O") if layout.isalpha() and layout.isupper() else None
        rest = tuple([d for d in range(found.ndim) if d != own])
        return int(found.sum(axis=rest).max(initial=0))
    assert e.attrs is not None and op_name(e) == "nn.batch_matmul"
    return weight.reach * extents[2 if e.attrs["transpose_b"] else 1]


def _sums(e: Call, args: Sequence[Value]) -> Value | None:
    """Convolutions and products."""
    data, weight = args
    if not (isinstance(data, Whole) and isinstance(weight, Whole)):
        return None
    config = current_qconfig()
    dtype, data = config.dtype_activation, data.cast(config.dtype_input)
    weight = weight.cast(config.dtype_weight if isinstance(weight.expr, Constant) else config.dtype_input)
    reach = data.reach * _weights_reach(e, weight)
    if reach > _room(dtype):
        raise ExpressionError(
            f"{op_name(e)}: its sums reach {reach}, beyond {dtype}",
            "use fewer bits (nbit_input, nbit_weight) or a wider dtype_activation",
        )
    assert e.attrs is not None
    made = Call(e.op, [data.expr, weight.expr], e.attrs.changed(out_dtype=dtype), (), e.span)
    return Whole(made, data.scale * weight.scale, dtype, reach)


def _product(e: Call, args: Sequence[Value]) -> Value | None:
    a, b = args
    if not (isinstance(a, Whole) and isinstance(b, Whole)):
        return None
    dtype = current_qconfig().dtype_activation
    a, b = a.cast(dtype), b.cast(dtype)
    made = Whole(applied(e, [a.expr, b.expr]), a.scale * b.scale, dtype, a.reach * b.reach)
    return made.cast(dtype)


def _one_scale(given: Sequence[Whole], terms: int) -> list[Whole]:
    """Integers of one scale: the finest one at which so many of them added, or each of them, fit the type of sums."""
    dtype = current_qconfig().dtype_activation
    room = _room(dtype)
    scale = min(w.scale for w in given)
    while max(terms * (ceil(w.reach * w.scale / scale) + 2) for w in given) > room:
        scale *= 2
    return [rescaled(w, scale, room, dtype) if w.scale != scale else w.cast(dtype) for w in given]


def _sum(e: Call, args: Sequence[Value]) -> Value | None:
    given = [a for a in args if isinstance(a, Whole)]
    if len(given) < 2:
        return None
    a, b = _one_scale(given, 2)
    return Whole(applied(e, [a.expr, b.expr]), a.scale, a.dtype, a.reach + b.reach)


def _joined(e: Call, args: Sequence[Value]) -> Value | None:
    fields = args[0] if isinstance(args[0], list) else []
    given = [f for f in fields if isinstance(f, Whole)]
    if not given or len(given) < len(fields):
        return None
    made = _one_scale(given, 1)
    joined: list[Value] = [w.expr for w in made]
    return Whole(applied(e, [plain(joined)]), made[0].scale, made[0].dtype, max(w.reach for w in made))


def _clipped(e: Call, args: Sequence[Value]) -> Value | None:
    x = args[0]
    if not isinstance(x, Whole):
        return None
    assert e.attrs is not None
    room = _room(x.dtype)
    first, last = (np.rint(float(e.attrs[n]) / x.scale) for n in ("a_min", "a_max"))
    if not (first <= room and last >= -room):  # what it gives is beyond the type, or no number
        return None
    low, high = int(max(first, -room)), int(min(last, room))
    reach = max(abs(min(max(end, low), high)) for end in (-x.reach, x.reach))
    return Whole(call("clip", x.expr, a_min=low, a_max=high), x.scale, x.dtype, reach)


def _moved(e: Call, args: Sequence[Value]) -> Value | None:
    """Operators that keep numbers as they are, or choose among them."""
    x = args[0]
    return Whole(applied(e, [x.expr]), x.scale, x.dtype, x.reach) if isinstance(x, Whole) else None


def _averaged(e: Call, args: Sequence[Value]) -> Value | None:
    """Means, in the type of sums: finer by the bits that sums of windows leave, as means of integers are cut."""
    x = args[0]
    if not isinstance(x, Whole):
        return None
    assert e.attrs is not None
    dtype = current_qconfig().dtype_activation
    room = _room(dtype)
    _, exponent = frexp(room / (max(x.reach, 1) * prod(e.attrs.get_int_tuple("pool_size"))))
    fine = rescaled(x, x.scale / 2.0 ** min(exponent - 2, 8), room, dtype)
    return Whole(applied(e, [fine.expr]), fine.scale, dtype, fine.reach)


def _cast(e: Call, args: Sequence[Value]) -> Value | None:
    x = args[0]
    assert e.attrs is not None
    return x.cast(e.attrs.get_str("dtype")) if isinstance(x, Whole) else x


RULES: dict[str, Callable[[Call, Sequence[Value]], Value | None]] = {
    SIMULATED: _simulated,
    **dict.fromkeys(("nn.conv1d", "nn.conv2d", "nn.dense", "nn.batch_matmul"), _sums),
    "multiply": _product,
    "add": _sum,
    "concatenate": _joined,
    "clip": _clipped,
    "nn.avg_pool2d": _averaged,
    "annotation.cast_hint": _cast,
    **dict.fromkeys(
        ("reshape", "nn.relu", "strided_slice", "nn.batch_flatten", "transpose", "annotation.stop_fusion",
         "expand_dims", "squeeze", "nn.max_pool2d"), _moved),
}  # fmt: skip


def realized(e: Call, args: Sequence[Value]) -> Value | None:
    """What takes the place of a call."""
    rule = RULES.get(op_name(e))
    return None if rule is None else rule(e, args)
