"""Operators of regions between `qnn.dequantize` and `qnn.quantize` as operators of whole numbers: a rule for each,
registered for `FakeQuantizationToInteger`.

A rule (call, map) is given a call whose arguments are whole numbers, with the type that it had, and a map that says what they
mean; it gives the call in its place and what that means.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compassc.ir.dtypes import dtype as data_type
from compassc.relay.attributes import Attrs
from compassc.relay.builders import call
from compassc.relay.expr import Call, Constant, Expr, Tuple, TupleGetItem
from compassc.relay.operators import OPERATORS, op_name
from compassc.relay.ops.convolution import both_ends
from compassc.relay.ops.fixed_point import on_axis, quantized
from compassc.relay.ops.quantised import UNARY
from compassc.relay.passes._functions import constant, scalar
from compassc.relay.qnn.affine import MOVES, AffineType, TensorAffineType, TupleAffineType, TypeMap, Unsuited
from compassc.relay.types import TensorType, TupleType

Found = tuple[Expr, AffineType]
Rule = Callable[[Call, TypeMap], Found]
BYTES = ("int8", "uint8")


def _attrs(e: Call) -> Attrs:
    assert e.attrs is not None
    return e.attrs


def _rank(e: Expr) -> int:
    t = e.checked_type
    assert isinstance(t, TensorType)
    return len(t.shape)


def _require(holds: bool, why: str) -> None:
    if not holds:
        raise Unsuited(why)


def requantize(x: Expr, own: TensorAffineType, out: TensorAffineType, dtype: str) -> Expr:
    """Numbers in other parameters and another type; themselves where both are the same."""
    if own.means_as(out):
        if own.dtype == dtype:
            return x
        low, high = data_type(dtype).range()
        return call("cast", call("clip", x, a_min=low, a_max=high), dtype=dtype)
    _require(out.is_scalar, "results have a scale for each channel")
    return call(
        "qnn.requantize", x, own.scale, own.zero_point, out.scale, out.zero_point, axis=own.axis, out_dtype=dtype
    )


def _result(e: Call, types: TypeMap) -> TensorAffineType:
    """The parameters of the region's result, for operators that are computed in them."""
    out = types.tensor(e)
    _require(out.is_scalar, "results have a scale for each channel")
    return out


# ---------------------------------------------------------------------------------------------------------- both ends


def _dequantize(e: Call, types: TypeMap) -> Found:
    x, scale, zero = e.args
    t = x.checked_type
    assert isinstance(t, TensorType)
    _require(t.dtype != "uint16", "there is no requantization of uint16")
    return x, TensorAffineType(scale, zero, t.dtype, _attrs(e).axis)


def _quantize(e: Call, types: TypeMap) -> Found:
    x, scale, zero = e.args
    out = TensorAffineType(scale, zero, _attrs(e).out_dtype, _attrs(e).axis)
    _require(out.dtype != "uint16", "there is no requantization to uint16")
    return requantize(x, types.tensor(x), out, out.dtype), out


# ------------------------------------------------------------------------------------------------ what moves and bounds


def _kept(e: Call, types: TypeMap) -> Found:
    """Numbers that are moved or chosen mean what they did."""
    t = types.tensor(e.args[0])
    _require(t.is_scalar, "there is a scale for each channel")
    return call(op_name(e), *e.args, **dict(e.attrs or {})), t


def _split(e: Call, types: TypeMap) -> Found:
    made, t = _kept(e, types)
    several = e.checked_type
    assert isinstance(t, TensorAffineType) and isinstance(several, TupleType)
    return made, TupleAffineType([t] * len(several.fields))


def _mean(e: Call, types: TypeMap) -> Found:
    t = types.tensor(e.args[0])
    _require(t.is_scalar, "there is a scale for each channel")
    made = call("mean", call("cast", e.args[0], dtype="int32"), **_attrs(e))
    return made, TensorAffineType(t.scale, t.zero_point, "int32")


def _numbers(values: object, t: TensorAffineType, rank: int) -> Array:
    """Reals as numbers of a type, as int32 so that none is cut off; of vectors of scales they lie on their axis."""
    shape = on_axis(t.scales() + np.zeros_like(t.zeros(), "float32"), t.axis, max(rank, 1)).shape
    return quantized(np.full(shape, values, "float32"), t.scales(), t.zeros(), t.axis, "int32")


def _bound(name: str, x: Expr, real: float, t: TensorAffineType) -> Expr:
    limits = data_type(t.dtype).range()
    return call(name, x, constant(np.clip(_numbers(real, t, _rank(x)), *limits).astype(t.dtype)))


def _relu(e: Call, types: TypeMap) -> Found:
    t = types.tensor(e.args[0])
    return _bound("maximum", e.args[0], 0.0, t), t


def _clip(e: Call, types: TypeMap) -> Found:
    t = types.tensor(e.args[0])
    lowest = _bound("maximum", e.args[0], _attrs(e).a_min, t).typed(e.args[0].checked_type)
    return _bound("minimum", lowest, _attrs(e).a_max, t), t


def _pad(e: Call, types: TypeMap) -> Found:
    x, fill = e.args
    t = types.tensor(x)
    _require(t.is_scalar, "there is a scale for each channel")
    if fill in types:
        fill = requantize(fill, types.tensor(fill), t, t.dtype)
    else:
        _require(isinstance(fill, Constant), "it is padded with what is computed")
        assert isinstance(fill, Constant)
        fill = constant(quantized(fill.array, t.scales(), t.zeros(), -1, t.dtype))
    return call("nn.pad", x, fill, **_attrs(e)), t


# ----------------------------------------------------------------------------------------------------- sums of products


def _product(name: str, channels: Callable[[Attrs, int], int], weights: Callable[[Attrs], int]) -> Rule:
    """A sum of products: of the type of sums, with the product of the scales. `channels`: the axis of the result, `weights`:
    that of the weights which scales may lie on."""

    def rule(e: Call, types: TypeMap) -> Found:
        (x, w), a = e.args, _attrs(e)
        own, other = types.tensor(x), types.tensor(w)
        kinds = ("int8", "uint8", "int16")
        _require(own.dtype in kinds and other.dtype in kinds, f"{own.dtype} and {other.dtype} are multiplied")
        _require(own.is_scalar, "the data has a scale for each channel")
        axis = other.axis if other.axis >= 0 else other.axis + _rank(w)
        _require(other.is_scalar or axis == weights(a), "scales lie on another axis than that of results")
        scale = constant((own.scales() * other.scales()).astype("float32"))
        made = call(
            name, x, w, own.zero_point, other.zero_point, own.scale, other.scale, **{**dict(a), "out_dtype": "int32"}
        )
        return made, TensorAffineType(scale, scalar(0, "int32"), "int32", channels(a, _rank(e)))

    return rule


def _channel(a: Attrs, rank: int) -> int:
    return int((a.out_layout or a.data_layout).index("C"))


def _output(a: Attrs) -> int:
    return int(a.kernel_layout.index("O"))


def _batch_matmul(e: Call, types: TypeMap) -> Found:
    a = _attrs(e)
    _require(not a.transpose_a and a.transpose_b, "matrices are not multiplied by rows")
    _require(types.tensor(e.args[1]).is_scalar, "there is a scale for each channel")
    found = _product("qnn.batch_matmul", lambda a, rank: -1, lambda a: 0)
    return found(e, types)


def _bias_add(e: Call, types: TypeMap) -> Found:
    """Sums in 32 bits; a bias has a zero point of 0."""
    x, bias = e.args
    t, axis = types.tensor(x), _attrs(e).axis % _rank(x)
    _require(t.is_scalar or t.axis % _rank(x) == axis, "the bias lies on another axis than scales")
    plain = TensorAffineType(t.scale, scalar(0, "int32"), "int32", 0)
    if bias in types:
        bias = requantize(bias, types.tensor(bias), plain, "int32")
    else:
        _require(isinstance(bias, Constant), "the bias is computed")
        assert isinstance(bias, Constant)
        bias = constant(quantized(bias.array, t.scales(), np.int32(0), 0, "int32"))
    wide = x if t.dtype == "int32" else call("cast", x, dtype="int32")
    return call("nn.bias_add", wide, bias, **_attrs(e)), TensorAffineType(t.scale, t.zero_point, "int32", t.axis)


# ------------------------------------------------------------------------------------------- in the result's parameters


def _operand(e: Expr, dtype: str, types: TypeMap) -> tuple[Expr, TensorAffineType]:
    """An operand and what it means; a constant of reals in the parameters that suit it."""
    if e in types:
        return e, types.tensor(e)
    _require(isinstance(e, Constant), "an operand is not quantised")
    assert isinstance(e, Constant)
    dtype = dtype if dtype in BYTES else "int8"
    low, high = data_type(dtype).range()
    least, most = min(0.0, float(e.array.min())), max(0.0, float(e.array.max()))
    scale = np.float32((most - least) / (high - low) or 1.0)
    zero = np.int32(np.clip(round(low - least / scale), low, high))
    made = quantized(e.array, scale, zero, -1, dtype)
    return constant(made), TensorAffineType(constant(scale), constant(zero), dtype)


def _pair(e: Call, types: TypeMap) -> list[tuple[Expr, TensorAffineType]]:
    known = [types.tensor(x).dtype for x in e.args if x in types]
    return [_operand(x, known[0] if known else "int8", types) for x in e.args]


def _arithmetic(name: str) -> Rule:
    def rule(e: Call, types: TypeMap) -> Found:
        (x, own), (y, other) = _pair(e, types)
        plain = name.replace("mul", "multiply")
        sums = own.means_as(other) and own.is_scalar and own.dtype == other.dtype == "int32" and not own.zeros().any()
        if name == "add" and sums:
            return call("add", x, y), own
        out = _result(e, types)
        if own.dtype == other.dtype == out.dtype and own.dtype in BYTES and own.is_scalar and other.is_scalar:
            pairs = [v for t in (own, other, out) for v in (t.scale, t.zero_point)]
            return call(f"qnn.{name}", x, y, *pairs), out
        _require(name != "mul", "products of 32 bits have no room")
        made = call(plain, *(requantize(v, t, out, "int32") for v, t in ((x, own), (y, other))))
        if out.zeros().any():
            made = call("subtract" if name == "add" else "add", made, out.zero_point)
        return made, TensorAffineType(out.scale, out.zero_point, "int32")

    return rule


def _choice(name: str) -> Rule:
    """The smaller or the larger one of two, in the parameters of the result."""

    def rule(e: Call, types: TypeMap) -> Found:
        out = _result(e, types)
        return call(name, *(requantize(x, t, out, out.dtype) for x, t in _pair(e, types))), out

    return rule


def _concatenate(e: Call, types: TypeMap) -> Found:
    (data,), out = e.args, _result(e, types)
    kinds = types[data]
    assert isinstance(kinds, TupleAffineType)
    fields = data.fields if isinstance(data, Tuple) else [TupleGetItem(data, i) for i in range(len(kinds.types))]
    if all(t.dtype == out.dtype and t.is_scalar for t in kinds.types):
        scales, zeros = (Tuple([getattr(t, n) for t in kinds.types]) for n in ("scale", "zero_point"))
        return call("qnn.concatenate", data, scales, zeros, out.scale, out.zero_point, **_attrs(e)), out
    made = Tuple([requantize(x, t, out, out.dtype) for x, t in zip(fields, kinds.types)])
    return call("concatenate", made, **_attrs(e)), out


def _bytes(e: Call, types: TypeMap) -> tuple[Expr, list[Expr], TensorAffineType]:
    """The argument of an operator of bytes, the four parameters, and those of the result."""
    (x,), out = e.args, _result(e, types)
    t = types.tensor(x)
    _require(t.dtype in BYTES and t.dtype == out.dtype and t.is_scalar, f"it takes {t.dtype} to {out.dtype}")
    return x, [t.scale, t.zero_point, out.scale, out.zero_point], out


def _unary(name: str) -> Rule:
    def rule(e: Call, types: TypeMap) -> Found:
        x, parameters, out = _bytes(e, types)
        return call(f"qnn.{name}", x, *parameters, **dict(e.attrs or {})), out

    return rule


def _avg_pool2d(e: Call, types: TypeMap) -> Found:
    a, rank = _attrs(e), 2
    x, parameters, out = _bytes(e, types)
    around = any(both_ends(a.padding, rank)) and a.count_include_pad
    _require(not around or not out.zeros().any(), "zeros around that are counted are no zeros here")
    return call("qnn.avg_pool2d", x, *parameters, **a), out


def _whole_mean(e: Call, types: TypeMap) -> Found:
    out = _result(e, types)
    x = requantize(e.args[0], types.tensor(e.args[0]), out, "int32")
    return call(op_name(e), x, **_attrs(e)), TensorAffineType(out.scale, out.zero_point, "int32")


RULES: dict[str, Rule] = {
    "qnn.dequantize": _dequantize,
    "qnn.quantize": _quantize,
    **dict.fromkeys(MOVES, _kept),
    "split": _split,
    "mean": _mean,
    "nn.relu": _relu,
    "clip": _clip,
    "nn.pad": _pad,
    "nn.conv2d": _product("qnn.conv2d", _channel, _output),
    "nn.conv2d_transpose": _product("qnn.conv2d_transpose", _channel, _output),
    "nn.dense": _product("qnn.dense", lambda a, rank: rank - 1, lambda a: 0),
    "nn.batch_matmul": _batch_matmul,
    "nn.bias_add": _bias_add,
    "add": _arithmetic("add"),
    "subtract": _arithmetic("subtract"),
    "multiply": _arithmetic("mul"),
    "minimum": _choice("minimum"),
    "maximum": _choice("maximum"),
    "concatenate": _concatenate,
    **{name: _unary(name) for name in UNARY if name in OPERATORS},
    "nn.leaky_relu": _unary("leaky_relu"),
    "nn.avg_pool2d": _avg_pool2d,
    "nn.global_avg_pool2d": _whole_mean,
    "nn.adaptive_avg_pool1d": _whole_mean,
}
for _name, _rule in RULES.items():
    OPERATORS[_name].set_attr("FTVMFakeQuantizationToInteger", _rule)
