"""What quantised operators are in other operators: a function (attributes, arguments, types of arguments and result) for
each, registered for `CanonicalizeOps`; and tables for functions of bytes, for `Legalize`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compassc.ir.dtypes import dtype as data_type
from compassc.ir.errors import ExpressionError
from compassc.relay.attributes import Attrs
from compassc.relay.builders import call
from compassc.relay.expr import Expr, Tuple, TupleGetItem
from compassc.relay.operators import OPERATORS
from compassc.relay.ops.fixed_point import requantization
from compassc.relay.ops.quantised import UNARY
from compassc.relay.passes._functions import constant, scalar
from compassc.relay.qnn import products
from compassc.relay.qnn.arithmetic import (
    Parameters,
    dequantized,
    is_zero,
    known,
    limited,
    quantized,
    requantized,
    scaled,
    value,
    without,
)
from compassc.relay.types import TensorType, TupleType, Type

Args = Sequence[Expr]
Types = Sequence[Type]
Lowering = Callable[[Attrs, Args, Types], Expr]


def tensor(t: Type) -> TensorType:
    assert isinstance(t, TensorType), f"{t} is no tensor"
    return t


def _pair(args: Args, types: Types, first: int, axis: int = -1) -> Parameters:
    """The scale and the zero point from an argument on."""
    return Parameters(args[first], args[first + 1], types[first + 1], axis)


def _rank(types: Types) -> int:
    return len(tensor(types[0]).shape)


def _requantize(a: Attrs, args: Args, types: Types) -> Expr:
    how = requantization(a.rounding, a.compute_dtype)
    return requantized(args[0], _pair(args, types, 1, a.axis), _pair(args, types, 3), _rank(types), a.out_dtype, how)


def _quantize(a: Attrs, args: Args, types: Types) -> Expr:
    return quantized(args[0], _pair(args, types, 1, a.axis), types[1], _rank(types), a.out_dtype, a.rounding)


def _dequantize(a: Attrs, args: Args, types: Types) -> Expr:
    return dequantized(args[0], _pair(args, types, 1, a.axis), types[1], _rank(types), a.out_dtype)


# ------------------------------------------------------------------------------------------------------ pairs and several


def _same(own: Parameters, out: Parameters) -> bool:
    """Whether scales and zero points are known and equal."""
    pairs = [(value(own.scale), value(out.scale)), (value(own.zero), value(out.zero))]
    return all(p is not None and q is not None and np.array_equal(p.reshape(-1), q.reshape(-1)) for p, q in pairs)


def _common(x: Expr, own: Parameters, out: Parameters, rank: int) -> Expr:
    """An operand by the parameters of the result, as int32."""
    if _same(own, out):
        return call("cast", x, dtype="int32")
    return requantized(x, own, out, rank, "int32", requantization())


def _sides(a: Attrs, args: Args, types: Types) -> tuple[Parameters, Parameters, Parameters]:
    return _pair(args, types, 2, a.lhs_axis), _pair(args, types, 4, a.rhs_axis), _pair(args, types, 6)


def _sum(name: str, back: str) -> Lowering:
    """Both operands by the parameters of the result; the zero point that is there twice (or not at all) is taken back."""

    def lower(a: Attrs, args: Args, types: Types) -> Expr:
        own, other, out = _sides(a, args, types)
        x = _common(args[0], own, out, len(tensor(types[0]).shape))
        y = _common(args[1], other, out, len(tensor(types[1]).shape))
        made = call(name, x, y)
        return limited(made if is_zero(out.zero) else call(back, made, out.zero), tensor(types[-1]).dtype)

    return lower


def _product(a: Attrs, args: Args, types: Types) -> Expr:
    own, other, out = _sides(a, args, types)
    scales = known(own.scale, "the scale of lhs"), known(other.scale, "the scale of rhs")
    ranks = [len(tensor(t).shape) for t in types[:2]]
    places = [axis - rank if axis >= 0 else axis for axis, rank in zip((own.axis, other.axis), ranks)]
    if scales[1].size > 1 and places[0] != places[1]:
        raise ExpressionError(
            f"qnn.mul: scales lie on axis {a.lhs_axis} of lhs and on axis {a.rhs_axis} of rhs",
            "scales of channels are multiplied where they lie on the same axis",
        )
    made = call("multiply", without(args[0], own, ranks[0]), without(args[1], other, ranks[1]))
    t = tensor(types[-1])
    scale = constant(scales[0].astype("float32") * scales[1].astype("float32"))
    product = Parameters(scale, scalar(0, "int32"), TensorType((), "int32"), places[0])
    return requantized(made, product, out, len(t.shape), t.dtype, requantization())


def _fields(e: Expr, count: int) -> list[Expr]:
    return list(e.fields) if isinstance(e, Tuple) else [TupleGetItem(e, i) for i in range(count)]


def _concatenate(a: Attrs, args: Args, types: Types) -> Expr:
    kinds = types[0]
    assert isinstance(kinds, TupleType)
    data, scales, zeros = (_fields(e, len(kinds.fields)) for e in args[:3])
    out, t, made = _pair(args, types, 3), tensor(types[-1]), []
    for x, scale, zero in zip(data, scales, zeros):
        own = Parameters(scale, zero, TensorType((), "int32"))
        made.append(x if _same(own, out) else requantized(x, own, out, len(t.shape), t.dtype, requantization()))
    return call("concatenate", Tuple(made), axis=a.axis)


# ---------------------------------------------------------------------------------------------------------- element by element


def _through_reals(name: str) -> Lowering:
    def lower(a: Attrs, args: Args, types: Types) -> Expr:
        rank, x = _rank(types), args[0]
        real: Expr = dequantized(x, _pair(args, types, 1), types[1], rank)
        if name == "hardswish":
            share = call("clip", call("add", real, scalar(3, "float32")), a_min=0.0, a_max=6.0)
            made = call("multiply", real, call("divide", share, scalar(6, "float32")))
        else:
            made = call(name, real)
        return quantized(made, _pair(args, types, 3), types[3], rank, tensor(types[-1]).dtype)

    return lower


def _by_table(name: str) -> Callable[[Attrs, Args, Types], Expr | None]:
    """A function of bytes as a table of its values, where scales and zero points are known."""

    def lower(a: Attrs, args: Args, types: Types) -> Expr | None:
        parameters = [value(e) for e in args[1:]]
        known = [p for p in parameters if p is not None]
        if len(known) < len(parameters):
            return None
        dtype = tensor(types[0]).dtype
        low, high = data_type(dtype).range()
        numbers = np.arange(low, high + 1).astype(dtype)
        table = OPERATORS[name].array_of(a, [numbers, *known], TensorType(numbers.shape, dtype))
        place: Expr = call("cast", args[0], dtype="int32")
        place = call("subtract", place, scalar(low, "int32")) if low else place
        return call("take", constant(table), place)

    return lower


def _leaky_relu(a: Attrs, args: Args, types: Types) -> Expr:
    x, rank, how = args[0], _rank(types), requantization()
    own, out = _pair(args, types, 1), _pair(args, types, 3)
    r = requantized(x, own, out, rank, "int32", how)
    low = scaled(r, np.asarray(a.alpha), how)
    if not is_zero(out.zero):
        low = call("add", low, scaled(out.zero, np.asarray(1 - a.alpha), how))
    negative = call("less", call("cast", x, dtype="int32"), own.zero)
    return limited(call("where", negative, low, r), tensor(types[-1]).dtype)


def _avg_pool2d(a: Attrs, args: Args, types: Types) -> Expr:
    x = _common(args[0], _pair(args, types, 1), _pair(args, types, 3), _rank(types))
    return limited(call("nn.avg_pool2d", x, **a), tensor(types[-1]).dtype)


LOWERINGS: dict[str, Lowering] = {
    "requantize": _requantize,
    "quantize": _quantize,
    "dequantize": _dequantize,
    "add": _sum("add", "subtract"),
    "subtract": _sum("subtract", "add"),
    "mul": _product,
    "concatenate": _concatenate,
    "leaky_relu": _leaky_relu,
    "avg_pool2d": _avg_pool2d,
    **{name: _through_reals(name) for name in UNARY},
    "conv2d": products.conv2d,
    "conv2d_transpose": products.conv2d_transpose,
    "dense": products.dense,
    "batch_matmul": products.batch_matmul,
}
for _name, _lower in LOWERINGS.items():
    OPERATORS[f"qnn.{_name}"].set_attr("FTVMQnnCanonicalize", _lower)
for _name in UNARY:
    OPERATORS[f"qnn.{_name}"].set_attr("FTVMQnnLegalize", _by_table(f"qnn.{_name}"))
