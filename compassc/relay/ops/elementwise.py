"""Operators of one tensor, element by element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.dtypes import dtype as data_type
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.exprs import Expr
from compassc.operators import arrays
from compassc.operators.broadcast import joined
from compassc.operators.calls import CallOperator, X
from compassc.operators.declare import Whole, sample, sizes
from compassc.operators.elementwise import mapped
from compassc.operators.expressions import define
from compassc.relay.attributes import Attrs
from compassc.relay.ops.declare import BROADCAST, ELEMENTWISE, INJECTIVE, OPAQUE, VOID, Body, declare, record
from compassc.relay.ops.relations import axis_of, bools, fail, require, same, shaped
from compassc.relay.types import Dim, Related, TensorType, Type
from compassc.te.tensor import Tensor

_SHAPE, _POSITIVE, _INSIDE = sample((3, 4)), sample((3, 4), low=0.1, high=4.0), sample((3, 4), low=-0.9, high=0.9)
NUMBERS, WHOLE, REALS = ("float32", "float16", "int8", "int32"), ("int8", "int32"), ("float32", "float16")


def real(name: str, operator: str | None = None) -> Body:
    """A tensor operator for reals alone."""

    def body(call: CallOperator[X], a: object, t: TensorType, x: X) -> X:
        if not data_type(t.dtype).is_floating:
            raise ExpressionTypeError(
                f"{name} computes reals, not {t.dtype}", f'cast to reals first: relay.cast(x, "float32") of {t}'
            )
        return call(operator or name, x)

    return body


def of_whole(name: str) -> Body:
    """A tensor operator that leaves whole numbers as they are."""
    return lambda call, a, t, x: call(name if data_type(t.dtype).is_floating else "identity", x)


for _name in "tan cos cosh sin sinh atan asinh exp erf sigmoid tanh fast_exp fast_erf fast_tanh".split():
    declare(_name, "data", same, ELEMENTWISE, _SHAPE, body=real(_name, _name.removeprefix("fast_")), level=1, types=REALS)  # fmt: skip
for _name in "log log2 log10 sqrt rsqrt".split():
    declare(_name, "data", same, ELEMENTWISE, _POSITIVE, body=real(_name), level=1, types=REALS)
for _name in "acos asin atanh".split():
    declare(_name, "data", same, ELEMENTWISE, _INSIDE, body=real(_name), level=1)
declare("acosh", "data", same, ELEMENTWISE, sample((3, 4), low=1.0, high=9.0), body=real("acosh"), level=1)
for _name in "floor ceil trunc".split():
    declare(_name, "data", same, ELEMENTWISE, _SHAPE, body=of_whole(_name), level=3, types=NUMBERS)
for _name in "sign abs negative".split():
    declare(_name, "data", same, ELEMENTWISE, _SHAPE, body=_name, level=3, types=NUMBERS)
declare("copy", "data", same, ELEMENTWISE, _SHAPE, body="identity", level=3, types=NUMBERS)
declare("logical_not", "data", same, ELEMENTWISE, sample(Whole((3, 4), 0, 2, "bool")), body="logical_not", level=4)
declare("bitwise_not", "data", same, ELEMENTWISE, _SHAPE, body="bitwise_not", level=4, types=WHOLE)
for _name in "isnan isfinite isinf".split():
    declare(
        _name, "data", bools, ELEMENTWISE, sample(np.array([0.5, np.inf, -np.inf, np.nan], "float32")), body=_name,
        level=3,
    )  # fmt: skip


def _round(call: CallOperator[X], a: object, t: TensorType, x: X) -> X:
    """Halves away from zero."""
    if not data_type(t.dtype).is_floating:
        return call("identity", x)
    whole = call("trunc", x)
    away = call("greater_equal", call("abs", call("subtract", x, whole)), 0.5)
    return call("where", away, call("add", whole, call("sign", x)), whole)


declare(
    "round", "data", same, ELEMENTWISE, sample(np.array([-2.5, -0.5, 0.49999997, 0.5, 1.5, 2.4, 8388609], "float32")),
    sample(Whole((4,), -5, 5)), body=_round, level=3,
)  # fmt: skip
for _name, _value in (("zeros_like", 0), ("ones_like", 1)):
    declare(_name, "data", same, ELEMENTWISE, _SHAPE, level=4, types=NUMBERS,
            body=lambda call, a, t, x, value=_value: call("full_like", x, value))  # fmt: skip


def _limits(a: Attrs, dtype: str) -> tuple[float, float]:
    """Bounds in a type: the nearest ones that it has."""
    kind = data_type(dtype)
    if kind.is_floating:
        return a.a_min, a.a_max
    low, high = (0, 1) if kind.is_bool else kind.range()
    bounds = [high if b >= high else low if b <= low else int(b) for b in (a.a_min, a.a_max)]
    return bounds[0], bounds[1]


declare(
    "clip", "a, a_min, a_max", same, ELEMENTWISE, sample((3, 4), a_min=-1.0, a_max=2.0),
    sample(Whole((3, 4), -128, 127, "int8"), a_min=-5.5, a_max=1000.0), record=record("ClipAttrs", a_min=..., a_max=...),
    body=lambda call, a, t, x: call("clip", x, *_limits(a, t.dtype)), level=3,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ other types


_cast = record("CastAttrs", dtype=...)
declare(
    "cast", "data, dtype", lambda a, x: shaped(x, x.shape, a.dtype), ELEMENTWISE, sample((3, 4), dtype="int32"),
    sample((3, 4), dtype="bool"), sample(Whole((3, 4), -300, 300), dtype="uint8"), record=_cast, level=3,
    reference=lambda a, t, x: arrays.cast(x, a.dtype), compute=lambda a, t, x: mapped(x, lambda v: te.cast(v, a.dtype), "T_cast"),
)  # fmt: skip
declare(
    "cast_like", "data, dtype_like", lambda a, x, like: shaped(x, x.shape, like.dtype), ELEMENTWISE,
    sample((3, 4), Whole((2,), 0, 9)), level=3, reference=lambda a, t, x, like: arrays.cast(x, t.dtype),
    compute=lambda a, t, x, like: mapped(x, lambda v: te.cast(v, t.dtype), "T_cast"),
)  # fmt: skip


def _same_width(a: Attrs, x: TensorType) -> Type:
    old, new = data_type(x.dtype), data_type(a.dtype)
    require(old.bits == new.bits, lambda: f"{x} has elements of {old.bits} bits, {a.dtype} has {new.bits}")
    return shaped(x, x.shape, a.dtype)


declare(
    "reinterpret", "data, dtype", _same_width, ELEMENTWISE, sample((3, 4), dtype="int32"), record=_cast, level=3,
    reference=lambda a, t, x: np.ascontiguousarray(x).view(a.dtype).reshape(x.shape),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ fixed point

Whole64 = Array | np.int64


def fixed_point(x: Array, multiplier: Whole64, left: Whole64, right: Whole64) -> Array:
    """x times multiplier / 2^31 times 2^left over 2^right, halves up, in int64, then int32."""
    product = (x.astype("int64") << left) * multiplier
    return ((product + (np.int64(1) << (right + np.int64(30)))) >> (right + np.int64(31))).astype("int32")


def _fixed_point(a: Attrs, t: TensorType, x: Array) -> Array:
    return fixed_point(x, np.int64(a.multiplier), np.int64(max(a.shift, 0)), np.int64(max(-a.shift, 0)))


def _i64(value: object) -> Expr:
    return te.const(value, "int64") if isinstance(value, int) else te.cast(value, "int64")


def fixed_point_value(x: object, multiplier: object, left: object, right: object) -> Expr:
    """As `fixed_point`, as an expression."""
    product = (_i64(x) << _i64(left)) * _i64(multiplier)
    one, right = _i64(1), _i64(right)
    return te.cast((product + (one << (right + _i64(30)))) >> (right + _i64(31)), "int32")


def _int32(a: object, x: TensorType, *rest: Type) -> Type:
    if x.dtype != "int32":
        raise fail(f"the data must be of int32, it is {x}", 'cast it: relay.cast(x, "int32")')
    return x


declare(
    "fixed_point_multiply", "data, multiplier, shift", _int32, ELEMENTWISE,
    sample(Whole((3, 4), -10**6, 10**6), multiplier=1395864371, shift=-3),
    sample(Whole((3, 4), -1000, 1000), multiplier=1 << 30, shift=0), sample(Whole((3, 4), -99, 99), multiplier=1 << 30, shift=3),
    record=record("FixedPointMultiplyAttrs", multiplier=..., shift=...), reference=_fixed_point, level=10,
    compute=lambda a, t, x: mapped(
        x, lambda v: fixed_point_value(v, a.multiplier, max(a.shift, 0), max(-a.shift, 0)), "T_fixed_point"),
)  # fmt: skip


def _lie_on(a: Attrs, rank: int, x: Array | Tensor) -> list[int]:
    """An array or a tensor of one dimension for each of `axes`, with axes of 1 between."""
    axes = [axis % rank for axis in a.axes]
    shape = sizes(x) if isinstance(x, Tensor) else list(x.shape)
    return [shape[axes.index(d)] if d in axes and len(shape) == len(axes) else 1 for d in range(rank)]


def _per_axis(a: Attrs, t: TensorType, x: Array, y: Array, left: Array, right: Array) -> Array:
    y, left, right = (n.reshape(_lie_on(a, x.ndim, n)).astype("int64") for n in (y, left, right))
    return fixed_point(
        x, y, left if a.is_lshift_required else np.int64(0), right if a.is_rshift_required else np.int64(0)
    )


def _per_axis_value(a: Attrs, t: TensorType, x: Tensor, y: Tensor, left: Tensor, right: Tensor) -> Tensor:
    y, left, right = (define("reshape", n, _lie_on(a, x.ndim, n)) for n in (y, left, right))
    return joined(
        lambda v, m, l, r: fixed_point_value(v, m, l if a.is_lshift_required else 0, r if a.is_rshift_required else 0),
        "fixed_point", x, y, left, right,
    )  # fmt: skip


declare(
    "fixed_point_multiply_per_axis", "x, y, lshift, rshift, is_lshift_required, is_rshift_required, axes", _int32,
    BROADCAST,
    sample(Whole((2, 3, 4), -99999, 99999), Whole((3,), 1 << 30, (1 << 31) - 1), Whole((3,), 0, 3), Whole((3,), 0, 5),
           is_lshift_required=True, is_rshift_required=True, axes=[1]),
    record=record("FixedPointMultiplyPerAxisAttrs", is_lshift_required=False, is_rshift_required=False, axes=...),
    reference=_per_axis, compute=_per_axis_value,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------------ shapes


def _rank(a: Attrs, x: TensorType) -> Type:
    return TensorType((len(x.shape),) if x.shape else (), a.dtype or "int32")


declare(
    "shape_of", 'data, dtype="int32"', _rank, OPAQUE, sample((3, 4)), record=record("ShapeOfAttrs", dtype=VOID), level=10,
    reference=lambda a, t, x: np.array(x.shape if x.ndim else 0),
)  # fmt: skip
declare(
    "ndarray_size", 'data, dtype="int32"', lambda a, x: TensorType((), a.dtype or "int32"), INJECTIVE, sample((3, 4)),
    record=record("NdarraySizeAttrs", dtype=VOID), level=10, reference=lambda a, t, x: np.array(x.size),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------- nn, and devices

declare("nn.relu", "data", same, ELEMENTWISE, _SHAPE, body="relu", level=1, types=NUMBERS)
declare(
    "nn.leaky_relu", "data, alpha=0.01", same, ELEMENTWISE, sample((3, 4), alpha=0.2),
    record=record("LeakyReluAttrs", alpha=0.25), body=lambda call, a, t, x: call("leaky_relu", x, a.alpha), level=3,
)  # fmt: skip


def along(axis: int, data: TensorType, what: str) -> Related:
    """The rule of vectors that lie on an axis of the data: its result is as the data."""
    at = axis_of(axis, len(data.shape), what)
    return Related(data, {1: TensorType((data.shape[at],), data.dtype)})


def on_axis(call: CallOperator[X], axis: int, shape: Sequence[Dim], x: X) -> X:
    """A vector with axes of 1 behind, so that it lies on an axis of a shape."""
    behind = len(shape) - 1 - axis % len(shape)
    return call("expand_dims", x, 1, behind) if behind else x


def _prelu(call: CallOperator[X], a: Attrs, t: TensorType, x: X, alpha: X) -> X:
    slope = on_axis(call, a.axis, t.shape, alpha)
    return call("where", call("greater", x, 0), x, call("multiply", x, slope))


declare(
    "nn.prelu", "data, alpha, axis=1", lambda a, x, alpha: along(a.axis, x, "axis"), BROADCAST, sample((2, 3, 4), (3,)),
    sample((2, 3), (3,), axis=-1), record=record("PReluAttrs", axis=1), partial="alpha", body=_prelu, level=3,
)  # fmt: skip
_BIAS = "The axis in bias_add must be in range for the shape; axis"
declare(
    "nn.bias_add", "data, bias, axis=1", lambda a, x, bias: along(a.axis, x, _BIAS), BROADCAST,
    sample((2, 3, 4), (3,)), sample((2, 3), (3,), axis=-1), record=record("BiasAddAttrs", axis=1), partial="bias", level=1,
    body=lambda call, a, t, x, bias: call("add", x, on_axis(call, a.axis, t.shape, bias)), types=NUMBERS,
)  # fmt: skip
