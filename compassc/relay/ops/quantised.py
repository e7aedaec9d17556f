"""Quantised operators (`qnn`). A number q means scale * (q - zero_point).

They are lowered to other operators before anything is run; the references here are exact, to the bit of what they are
lowered to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.ir.errors import ExpressionError
from compassc.operators.calls import CallOperator, X
from compassc.operators.declare import Whole, sample
from compassc.relay.attributes import RECORDS, Attrs
from compassc.relay.builders import builder, call
from compassc.relay.expr import Expr, Tuple, const
from compassc.relay.operators import OPERATORS
from compassc.relay.ops.convolution import conv_reference, conv_rule, prepared, transposed_reference, transposed_rule
from compassc.relay.ops.declare import ANCHOR, ELEMENTWISE, OPAQUE, VOID, Evaluate, Rule, declare, expression, record
from compassc.relay.ops.fixed_point import (
    TIES_TO_EVEN,
    dequantized,
    limited,
    on_axis,
    quantized,
    requantization,
    requantized,
    scaled,
)
from compassc.relay.ops.relations import axis_of, differ, require, shaped, stretched, tensors
from compassc.relay.types import Dim, Related, TensorType, TupleType, Type

SIGNED, ANY_INT = ("int8", "uint8", "int16", "int32", "int64"), ("int8", "uint8", "int16", "int32")


# --------------------------------------------------------------------------------------------------------------- type rules


def _one_of(t: TensorType, known: Sequence[str], what: str) -> None:
    require(t.dtype in known, lambda: f"{what} must be of {', '.join(known)}, it is {t}")


def _result(dtype: str, known: Sequence[str]) -> str:
    require(dtype in known, lambda: f"out_dtype must be one of {', '.join(known)}, not '{dtype}'")
    return dtype


def _parameter(t: Type, dtype: str, what: str, extent: Dim | None = None, other: str = "") -> None:
    """That a scale or a zero point, of the type or another one, is a scalar, or has one number for each of `extent`."""
    if not isinstance(t, TensorType):
        return
    require(t.dtype in (dtype, other), lambda: f"{what} must be of {dtype}{other and f' or {other}'}, it is {t}")
    if not t.shape or t.shape == (1,):
        return
    fits = extent is not None and len(t.shape) == 1 and not differ(t.shape[0], extent)
    require(
        fits,
        lambda: (
            f"{what} must be a scalar" + (f" or have {extent} numbers" if extent is not None else "") + f", it is {t}"
        ),
    )


def _parameters(x: TensorType, axis: int, *pairs: tuple[str, Type, Type], wide: str = "") -> None:
    """Scales and zero points: of the first pair of an axis, too, of the others scalars. `wide`: another type of the first scale."""
    rank = len(x.shape)
    extent = x.shape[axis_of(axis, rank)] if rank and axis != -1 else x.shape[-1] if rank else None
    for n, (name, scale, zero) in enumerate(pairs):
        first = n == 0
        _parameter(scale, "float32", f"the scale of the {name}", extent if first else None, wide if first else "")
        _parameter(zero, "int32", f"the zero point of the {name}", extent if n == 0 else None)


def _requantize_rule(a: Attrs, x: TensorType, s: Type, z: Type, new_s: Type, new_z: Type) -> Type:
    _one_of(x, SIGNED, "the input")
    _parameters(x, a.axis, ("input", s, z), ("output", new_s, new_z), wide="float64")  # products of scales, not rounded
    return shaped(x, x.shape, _result(a.out_dtype, ANY_INT))


def _quantize_rule(a: Attrs, x: TensorType, s: Type, z: Type) -> Type:
    _one_of(x, ("float32",), "the input")
    _parameters(x, a.axis, ("output", s, z))
    require(a.rounding in ("None", TIES_TO_EVEN), lambda: f"rounding is None or {TIES_TO_EVEN}, not '{a.rounding}'")
    return shaped(x, x.shape, _result(a.out_dtype, ("int8", "uint8", "int16", "uint16", "int32")))


def _dequantize_rule(a: Attrs, x: TensorType, s: Type, z: Type) -> Type:
    _one_of(x, (*SIGNED, "uint16"), "the input")
    _parameters(x, a.axis, ("input", s, z))
    return shaped(x, x.shape, _result(a.out_dtype, ("float16", "float32")))


def _s(*values: float) -> Array:
    return np.array(values if len(values) > 1 else values[0], "float32")


def _z(*values: int) -> Array:
    return np.array(values if len(values) > 1 else values[0], "int32")


_WORDS, _BYTES = Whole((2, 3, 4), -999, 999), Whole((2, 3, 4), -128, 128, "int8")
declare(
    "qnn.requantize",
    'data, input_scale, input_zero_point, output_scale, output_zero_point, axis=-1, rounding="None", compute_dtype="None", out_dtype="int8"',
    _requantize_rule, OPAQUE, sample(_WORDS, _s(0.1), _z(3), _s(0.7), _z(-5), out_dtype="int8"),
    sample(_WORDS, _s(0.1, 0.2, 3.0), _z(0), _s(0.7), _z(1), axis=1, out_dtype="uint8", rounding="TONEAREST"),
    sample(_BYTES, _s(0.5), _z(1), _s(0.5), _z(-2), out_dtype="int32"),
    sample(_WORDS, _s(0.1, 0.2, 3.0), _z(0), _s(0.7), _z(-5), axis=1, out_dtype="int8", rounding="TWICE_TONEAREST"), sample(_WORDS, _s(0.1), _z(3), _s(0.7), _z(-5), out_dtype="int8", compute_dtype="float32"),
    record=record("RequantizeAttrs", axis=-1, rounding="None", compute_dtype="None", out_dtype=VOID), TNonComputational=True, level=11,
    reference=lambda a, t, x, s, z, ns, nz: requantized(x, (s, z), (ns, nz), a.axis, a.out_dtype, requantization(a.rounding, a.compute_dtype)),
)  # fmt: skip
declare(
    "qnn.quantize", 'data, output_scale, output_zero_point, axis=-1, out_dtype="int8", rounding="None"', _quantize_rule, OPAQUE,
    sample((2, 3, 4), _s(0.1), _z(3), out_dtype="int8"), sample((2, 3, 4), _s(0.1, 0.2, 0.3), _z(1, 2, 3), axis=1, out_dtype="uint8"),
    sample((2, 3, 4), _s(0.5), _z(3), out_dtype="int8", rounding=TIES_TO_EVEN),
    record=record("QuantizeAttrs", out_dtype=..., axis=-1, rounding="None"),
    reference=lambda a, t, x, s, z: quantized(x, s, z, a.axis, a.out_dtype, a.rounding),
    level=11, TNonComputational=True,
)  # fmt: skip
declare(
    "qnn.dequantize", 'data, input_scale, input_zero_point, axis=-1, out_dtype="float32"', _dequantize_rule, OPAQUE,
    sample(_BYTES, _s(0.1), _z(3), out_dtype="float32"), sample(_BYTES, _s(0.1, 0.2, 0.3), _z(1), axis=1, out_dtype="float16"),
    record=record("DequantizeAttrs", out_dtype=..., axis=-1), reference=lambda a, t, x, s, z: dequantized(x, s, z, a.axis, a.out_dtype),
    level=11, TNonComputational=True,
)  # fmt: skip


# ----------------------------------------------------------------------------------------------------- sums of products

_SUMS = ("int16", "int32", "int64")


def _products(rule: Rule, channels: str) -> Rule:
    """The rule of a quantised operator with weights by that of the plain one."""

    def related(a: Attrs, x: TensorType, w: Type, zx: Type, zw: Type, sx: Type, sw: Type) -> Related | Type | None:
        _one_of(x, ("int8", "uint8", "int16"), "the data")
        if isinstance(w, TensorType):
            _one_of(w, ("int8", "uint8", "int16"), "the weight")
        found = rule(a, x, w)
        if found is None:
            return None
        extent = getattr(a, channels)
        _parameter(sx, "float32", "the scale of the data")
        _parameter(zx, "int32", "the zero point of the data")
        _parameter(sw, "float32", "the scale of the weight", extent if extent is not None else sw.shape[0] if isinstance(sw, TensorType) and sw.shape else None)  # fmt: skip
        _parameter(
            zw,
            "int32",
            "the zero point of the weight",
            zw.shape[0] if isinstance(zw, TensorType) and zw.shape else None,
        )
        _result(a.out_dtype, _SUMS)
        return found

    return related


def _apart(x: Array, zero: object, axis: int = 0) -> Array:
    made: Array = x.astype("int64") - on_axis(zero, axis, x.ndim).astype("int64")
    return made


def _conv(reference: Callable[[Attrs, TensorType, Array, Array], Array], out_axis: str) -> Evaluate:
    def evaluate(a: Attrs, t: TensorType, x: Array, w: Array, zx: Array, zw: Array, sx: Array, sw: Array) -> Array:
        return reference(a, t, _apart(x, zx), _apart(w, zw, a.kernel_layout.index(out_axis)))

    return evaluate


_ARGUMENTS = "input_zero_point, kernel_zero_point, input_scale, kernel_scale"
_I8, _U8 = Whole((1, 3, 5, 6), -128, 128, "int8"), Whole((1, 3, 5, 6), 0, 256, "uint8")
_KERNEL = Whole((4, 3, 3, 3), -128, 128, "int8")
declare(
    "qnn.conv2d",
    f'data, kernel, {_ARGUMENTS}, kernel_size, channels, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, data_layout="NCHW", kernel_layout="OIHW", out_layout="", out_dtype="int32"',
    _products(conv_rule(2), "channels"), ANCHOR, sample(_U8, _KERNEL, _z(7), _z(-3), _s(0.5), _s(0.25), padding=[1, 1, 0, 0], out_dtype="int32"),
    sample(_I8, _KERNEL, _z(0), _z(0), _s(0.5), _s(0.25, 0.5, 1, 2), channels=4, kernel_size=[3, 3], strides=[2, 1], out_dtype="int32"),
    record=RECORDS["relay.attrs.Conv2DAttrs"], partial="kernel", prepare=prepared(2), reference=_conv(conv_reference(2), "O"), level=11,
    TNonComputational=True,
)  # fmt: skip
declare(
    "qnn.conv2d_transpose",
    f'data, weight, {_ARGUMENTS}, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=None, kernel_size=None, data_layout="NCHW", kernel_layout="IOHW", out_layout="", output_padding=(0, 0), out_dtype="int32"',
    _products(transposed_rule(2), "channels"), ANCHOR,
    sample(_U8, Whole((3, 2, 3, 3), -128, 128, "int8"), _z(7), _z(-3), _s(0.5), _s(0.25), strides=[2, 1], out_dtype="int32"),
    record=RECORDS["relay.attrs.Conv2DTransposeAttrs"], partial="weight", prepare=prepared(2), level=11, TNonComputational=True,
    reference=_conv(transposed_reference(2), "O"),
)  # fmt: skip


def _plain(name: str) -> Rule:
    """The type rule of the operator of a name, by types."""
    relation = OPERATORS[name].relation
    assert relation is not None
    return lambda a, *types: relation(types, a)


declare(
    "qnn.dense", f'data, weight, {_ARGUMENTS}, units=None, out_dtype="int32"', _products(_plain("nn.dense"), "units"), OPAQUE,
    sample(Whole((3, 5), 0, 256, "uint8"), Whole((4, 5), -128, 128, "int8"), _z(7), _z(-3), _s(0.5), _s(0.25), units=None, out_dtype="int32"),
    record=RECORDS["relay.attrs.DenseAttrs"], partial="weight", level=11, TNonComputational=True,
    reference=lambda a, t, x, w, zx, zw, sx, sw: _apart(x, zx) @ _apart(w, zw).T,
)  # fmt: skip


def _batch_rule(a: object, x: TensorType, y: TensorType, *parameters: Type) -> Type | Related | None:
    return _products(_plain("nn.batch_matmul"), "out_dtype")(a, x, y, *parameters)


def _batch_products(a: Attrs, t: Type, x: Array, y: Array, zx: Array, zy: Array, sx: Array, sy: Array) -> Array:
    return OPERATORS["nn.batch_matmul"].array_of(a, [_apart(x, zx), _apart(y, zy)], t)


declare(
    "qnn.batch_matmul", 'x, y, x_zero_point, y_zero_point, x_scale, y_scale, out_dtype="int32"', _batch_rule, OPAQUE,
    sample(Whole((2, 3, 5), -128, 128, "int8"), Whole((2, 4, 5), -128, 128, "int8"), _z(7), _z(-3), _s(0.5), _s(0.25), transpose_b=True, out_dtype="int32"),
    record=RECORDS["relay.attrs.BatchMatmulAttrs"], level=11, TNonComputational=True, prepare=lambda v: v.update(transpose_b=True, transpose_a=False),
    reference=_batch_products,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------ pairs and several

Pair = tuple[Array, Array]


def _common(x: Array, own: Pair, out: Pair, axis: int) -> Array:
    """An operand by the parameters of the result, as int32."""
    same = all(np.array_equal(np.asarray(v).reshape(-1), np.asarray(w).reshape(-1)) for v, w in zip(own, out))
    return x.astype("int32") if same else requantized(x, own, out, axis, "int32", requantization())


def _added(sign: int) -> Evaluate:
    def evaluate(
        a: Attrs, t: TensorType, x: Array, y: Array, sx: Array, zx: Array, sy: Array, zy: Array, s: Array, z: Array
    ) -> Array:
        left, right = _common(x, (sx, zx), (s, z), a.lhs_axis), _common(y, (sy, zy), (s, z), a.rhs_axis)
        return limited(left + sign * right - sign * z, t.dtype)

    return evaluate


def _multiplied(
    a: Attrs, t: TensorType, x: Array, y: Array, sx: Array, zx: Array, sy: Array, zy: Array, s: Array, z: Array
) -> Array:
    product = _apart(x, zx, a.lhs_axis) * _apart(y, zy, a.rhs_axis)
    scale, axis = np.asarray(sx, "float32") * np.asarray(sy, "float32"), a.lhs_axis - (x.ndim if a.lhs_axis >= 0 else 0)
    return requantized(product.astype("int32"), (scale, _z(0)), (s, z), axis, t.dtype, requantization())


def _pair_rule(a: Attrs, x: TensorType, y: TensorType, *parameters: Type) -> Type:
    require(x.dtype == y.dtype, lambda: f"lhs is {x}, rhs is {y}: their data types must be one")
    (sx, zx, sy, zy, s, z) = parameters
    _parameters(x, a.lhs_axis, ("lhs", sx, zx), ("output", s, z))
    _parameters(y, a.rhs_axis, ("rhs", sy, zy))
    return shaped(x, stretched(x.shape, y.shape, lambda: f"Incompatible broadcast type {x} and {y}"))


_pair = record("BroadcastAttrs", lhs_axis=-1, rhs_axis=-1)
_PAIR = "lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point, lhs_axis=-1, rhs_axis=-1"
for _name, _function in (("add", _added(1)), ("subtract", _added(-1)), ("mul", _multiplied)):
    declare(
        f"qnn.{_name}", _PAIR, _pair_rule, OPAQUE, sample(_BYTES, Whole((3, 1), -128, 128, "int8"), _s(0.1), _z(3), _s(0.2), _z(-4), _s(0.3), _z(5)),
        sample(_BYTES, _BYTES, _s(0.1), _z(3), _s(0.1), _z(3), _s(0.1), _z(3)), record=_pair, reference=_function, level=11, TNonComputational=True,
    )  # fmt: skip


def _joined(a: Attrs, data: TupleType, scales: TupleType, zeros: TupleType, s: Type, z: Type) -> Type:
    fields = tensors(data, "concatenate")
    require(len(fields) == len(scales.fields) == len(zeros.fields), lambda: f"{len(fields)} tensors need a scale and a zero point each, not {scales} and {zeros}")  # fmt: skip
    for scale, zero in zip(scales.fields, zeros.fields):
        _parameter(scale, "float32", "the scale of an input")
        _parameter(zero, "int32", "the zero point of an input")
    relation = OPERATORS["concatenate"].relation
    assert relation is not None
    found = relation([data], a)
    assert isinstance(found, Type)
    return found


def _join(a: Attrs, t: TensorType, data: Array, scales: Array, zeros: Array, s: Array, z: Array) -> Array:
    made = [
        x if np.array_equal(scale, s) and np.array_equal(zero, z)
        else requantized(x, (scale, zero), (s, z), -1, t.dtype, requantization())
        for x, scale, zero in zip(data, scales, zeros)
    ]  # fmt: skip
    return np.concatenate(made, a.axis)


declare(
    "qnn.concatenate", "data, input_scales, input_zero_points, output_scale, output_zero_point, axis", _joined, OPAQUE,
    record=RECORDS["relay.attrs.ConcatenateAttrs"], tuples="data input_scales input_zero_points", reference=_join, build=False, level=11,
    TNonComputational=True,
)  # fmt: skip


class NothingToJoin(ExpressionError, ValueError):
    """A concatenation of no tensors, or without their scales."""


@builder("qnn.concatenate")
def concatenate(
    data: object,
    input_scales: object,
    input_zero_points: object,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int,
) -> Expr:
    """Tensors one behind the other, by the parameters of the result."""
    given = [expression(v) if v is not None and v != [] else None for v in (data, input_scales, input_zero_points)]
    if any(g is None or isinstance(g, Tuple) and not g.fields for g in given):
        raise NothingToJoin("relay.qnn.concatenate needs tensors, and a scale and a zero point for each")
    return call("qnn.concatenate", *given, output_scale, output_zero_point, axis=axis)


# ---------------------------------------------------------------------------------------------------------- element by element


def _unary_rule(a: object, x: TensorType, s: Type, z: Type, new_s: Type, new_z: Type) -> Type:
    _one_of(x, ("int8", "uint8"), "the input")
    for name, scale, zero in (("input", s, z), ("output", new_s, new_z)):
        _parameter(scale, "float32", f"the scale of the {name}")
        _parameter(zero, "int32", f"the zero point of the {name}")
    return x


def _real(name: str) -> Callable[[Array], Array]:
    """The function of reals of a name, in float32."""
    if name == "hardswish":
        return lambda x: x * (np.clip(x + np.float32(3), np.float32(0), np.float32(6)) / np.float32(6))

    return lambda x: OPERATORS[name].array_of(None, [x], TensorType(x.shape, "float32"))


def _through_reals(name: str) -> Evaluate:
    def evaluate(a: Attrs, t: TensorType, x: Array, s: Array, z: Array, ns: Array, nz: Array) -> Array:
        return quantized(_real(name)(dequantized(x, s, z, -1)), ns, nz, -1, t.dtype)

    return evaluate


UNARY: tuple[str, ...] = ("tanh", "exp", "sqrt", "rsqrt", "erf", "sigmoid", "hardswish", "log", "abs")
"""Functions of reals that quantised operators have the names of."""
for _name in UNARY:
    declare(
        f"qnn.{_name}", "x, scale, zero_point, output_scale, output_zero_point", _unary_rule, OPAQUE,
        sample(Whole((3, 4), 1, 99, "int8"), _s(0.05), _z(0), _s(0.1), _z(-3)), reference=_through_reals(_name), level=11, TNonComputational=True,
    )  # fmt: skip


def _leaky(a: Attrs, t: TensorType, x: Array, s: Array, z: Array, ns: Array, nz: Array) -> Array:
    how = requantization()
    r = requantized(x, (s, z), (ns, nz), -1, "int32", how)
    zero = np.broadcast_to(np.asarray(nz, "int32"), r.shape)
    low = scaled(r, a.alpha, how) + scaled(zero, 1 - a.alpha, how)
    return limited(np.where(x < np.asarray(z), low, r), t.dtype)


declare(
    "qnn.leaky_relu", "x, alpha, input_scale, input_zero_point, output_scale, output_zero_point", _unary_rule, OPAQUE,
    sample(_BYTES, _s(0.1), _z(3), _s(0.2), _z(-4), alpha=0.3), record=RECORDS["relay.attrs.LeakyReluAttrs"], reference=_leaky, level=11,
    TNonComputational=True,
)  # fmt: skip


def _soft_rule(a: Attrs, x: TensorType, *parameters: Type) -> Type:
    axis_of(a.axis, len(x.shape))
    _one_of(x, ("int8",), "the input")
    return _unary_rule(a, x, *parameters)


declare("qnn.softmax", "x, scale, zero_point, output_scale, output_zero_point, axis=-1", _soft_rule, OPAQUE,
        record=RECORDS["relay.attrs.SoftmaxAttrs"], level=11, TNonComputational=True)  # fmt: skip


def _pool_rule(a: object, x: TensorType, *parameters: Type) -> Type:
    _unary_rule(a, x, *parameters)
    found = _plain("nn.avg_pool2d")(a, x)
    assert isinstance(found, Type)
    return found


def _pool(a: Attrs, t: TensorType, x: Array, s: Array, z: Array, ns: Array, nz: Array) -> Array:
    whole = OPERATORS["nn.avg_pool2d"].array_of(a, [_common(x, (s, z), (ns, nz), -1)], TensorType(t.shape, "int32"))
    return limited(whole, t.dtype)


declare(
    "qnn.avg_pool2d",
    'data, input_scale, input_zero_point, output_scale, output_zero_point, pool_size, strides, padding, dilation, ceil_mode=False, count_include_pad=True, layout="NHWC", out_layout=""',
    _pool_rule, ANCHOR, sample(Whole((1, 4, 6, 2), -128, 128, "int8"), _s(0.1), _z(3), _s(0.2), _z(-4), pool_size=[2, 2], strides=[2, 2], layout="NHWC"),
    record=RECORDS["relay.attrs.AvgPool2DAttrs"], reference=_pool, level=11, TNonComputational=True,
)  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- simulated

CODES = {"disable": 0, "int8": 1, "uint8": 2, "int32": 3}
"""Types by the numbers that simulated quantisation has for them."""
_NAMES = {code: name for name, code in CODES.items()}


def _simulated(a: object, x: TensorType, code: Type, s: Type, z: Type) -> Type:
    _one_of(x, ("float32", "float64", "float16"), "the input")
    return x


def _simulate(a: Attrs, t: TensorType, x: Array, code: Array, s: Array, z: Array) -> Array:
    name = _NAMES[int(code)]
    return x if name == "disable" else quantized(x, s, z, a.axis, name)


def _desimulate(a: Attrs, t: TensorType, x: Array, code: Array, s: Array, z: Array) -> Array:
    if not int(code):
        return x
    scale, zero = (on_axis(v, a.axis, max(x.ndim, 1)) for v in (s, z))
    return (x - zero) * scale


_simulated_attrs = record("SimulatedQuantizeAttrs", axis=-1)
declare("qnn.simulated_quantize", "data, in_dtype_, output_scale, output_zero_point, axis=-1", _simulated, OPAQUE,
        sample((3, 4), _z(1), _s(0.1), _z(3)), record=_simulated_attrs, reference=_simulate, build=False, level=11, TNonComputational=True)  # fmt: skip
declare("qnn.simulated_dequantize", "data, in_dtype_, input_scale, input_zero_point, axis=-1", _simulated, OPAQUE,
        sample((3, 4), _z(1), _s(0.1), _z(3), out_dtype=""), record=RECORDS["relay.attrs.DequantizeAttrs"], reference=_desimulate, build=False, level=11,
        TNonComputational=True)  # fmt: skip


def _annotated(call: CallOperator[X], a: Attrs, t: TensorType, x: X, scale: X, low: X, high: X) -> X:
    """What is left of reals that are rounded to steps between bounds."""
    if not a.kind:
        return x
    steps = call("minimum", call("maximum", call("round", call("divide", x, scale)), low), high)
    return call("multiply", steps, scale)


declare("relay.op.annotation.simulated_quantize", "data, dom_scale, clip_min, clip_max",
        lambda a, x, *parameters: x, ELEMENTWISE, sample((3, 4), _s(0.1), _s(-127.0), _s(127.0), kind=1, sign=True, rounding="round"),
        record=record("AnnotatedQuantizeAttrs", kind=..., sign=True, rounding="round"), body=_annotated, build=False, level=11)  # fmt: skip


def _code(dtype: object) -> Expr:
    return dtype if isinstance(dtype, Expr) else const(CODES[str(dtype)], "int32")


@builder("qnn.simulated_quantize")
def simulated_quantize(
    data: Expr, output_scale: Expr, output_zero_point: Expr, axis: int = -1, out_dtype: object = "int8"
) -> Expr:
    """What quantisation gives, as reals; the type may be computed."""
    return call("qnn.simulated_quantize", data, _code(out_dtype), output_scale, output_zero_point, axis=axis)


@builder("qnn.simulated_dequantize")
def simulated_dequantize(
    data: Expr, input_scale: Expr, input_zero_point: Expr, axis: int = -1, in_dtype: object = "int8"
) -> Expr:
    """The reals that the results of `simulated_quantize` mean."""
    return call(
        "qnn.simulated_dequantize", data, _code(in_dtype), input_scale, input_zero_point, axis=axis, out_dtype=""
    )
