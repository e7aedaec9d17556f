"""Pictures in other sizes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.dtypes import dtype as data_type
from compassc.ir.errors import ExpressionError
from compassc.ir.exprs import Expr as Element
from compassc.operators.calls import CallOperator, References, X
from compassc.operators.declare import sample
from compassc.operators.expressions import define
from compassc.relay import layouts
from compassc.relay.attributes import Attrs
from compassc.relay.builders import builder, call
from compassc.relay.expr import Expr, const
from compassc.relay.ops.convolution import SPACE
from compassc.relay.ops.declare import INJECTIVE, VOID, Meanings, NoExpression, Rule, declare, record
from compassc.relay.ops.relations import of, require, shaped
from compassc.relay.ops.shapes import extents, several
from compassc.relay.types import Dim, TensorType, Type
from compassc.te.tensor import Tensor

R = TypeVar("R", float, Array)
"""Places between elements."""
P = TypeVar("P", Array, Element)
"""Places of elements."""
METHODS = ("nearest_neighbor", "linear", "cubic")
MODES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
ROUNDINGS = ("", "round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def source(place: R, old: int, new: int, mode: str, start: float = 0.0, end: float = 1.0) -> R:
    """The place in the old picture of a place in the new one; between elements, too."""
    if mode == "align_corners":
        return place * ((old - 1) / (new - 1) if new > 1 else 0.0)
    if mode == "asymmetric":
        return place * (old / new)
    if mode == "tf_half_pixel_for_nn":
        return (place + 0.5) * (old / new)
    if mode == "tf_crop_and_resize":
        if new == 1:
            return place * 0.0 + 0.5 * (start + end) * (old - 1)
        return place * ((end - start) * (old - 1) / (new - 1)) + start * (old - 1)
    if mode == "pytorch_half_pixel" and new == 1:
        return place * 0.0
    return (place + 0.5) * (old / new) - 0.5


def rounded(value: Array, how: str, mode: str) -> Array:
    """The place of the nearest element, by a way to round."""
    how = how or ("round" if mode == "align_corners" else "floor")
    if how == "round":
        return np.sign(value) * np.floor(np.abs(value) + 0.5)
    if how == "round_prefer_floor":
        return np.ceil(value - 0.5)
    if how == "round_prefer_ceil":
        return np.floor(value + 0.5)
    return np.floor(value + 1e-5) if how == "floor" else np.ceil(value - 1e-5)


def nearest(place: P, old: int, new: int, a: Attrs | Options, floordiv: Callable[[P, int], P]) -> P:
    """The whole place in the old picture nearest to that of a new place, exactly: ties are between whole numbers."""
    mode = a.coordinate_transformation_mode
    if mode == "align_corners":
        value, parts = place * (old - 1 if new > 1 else 0), max(new - 1, 1)
    elif mode == "asymmetric":
        value, parts = place * old, new
    elif mode == "pytorch_half_pixel" and new == 1:
        value, parts = place * 0, 1
    else:
        value, parts = place * (2 * old) + (old if mode == "tf_half_pixel_for_nn" else old - new), 2 * new
    how = a.rounding_method or ("round" if mode == "align_corners" else "floor")
    if how == "floor":
        return floordiv(value, parts)
    if how == "ceil":
        return floordiv(value + (parts - 1), parts)
    if how == "round_prefer_floor":
        return floordiv(value * 2 + (parts - 1), 2 * parts)
    return floordiv(value * 2 + parts, 2 * parts)  # a place below 0 is cut to 0, however its halves are rounded


def cubic(fraction: Array, alpha: float) -> list[Array]:
    """The weights of the four elements around."""
    t, a = fraction, alpha
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (t, 1 - t)]
    far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (t + 1, 2 - t)]
    return [far[0], near[0], near[1], far[1]]


def axis_weights(old: int, new: int, a: Attrs | Options, start: float, end: float) -> tuple[Array, Array]:
    """What each new place takes of each old one, and which new places lie outside."""
    at = source(np.arange(new, dtype="float64"), old, new, a.coordinate_transformation_mode, start, end)
    made, rows = np.zeros((new, old)), np.arange(new)
    if a.method == "nearest_neighbor":
        if a.coordinate_transformation_mode == "tf_crop_and_resize":
            places = rounded(at, a.rounding_method, a.coordinate_transformation_mode)
        else:
            places = nearest(rows, old, new, a, np.floor_divide)
        made[rows, np.clip(places, 0, old - 1).astype(int)] = 1
    else:
        low = np.floor(at)
        weights = [1 - (at - low), at - low] if a.method == "linear" else cubic(at - low, a.cubic_alpha)
        taps = [low + n for n in ((0, 1) if a.method == "linear" else (-1, 0, 1, 2))]
        if a.method == "cubic" and a.cubic_exclude:
            weights = [np.where((t < 0) | (t >= old), 0, w) for w, t in zip(weights, taps)]
            total = sum(weights)
            weights = [w / total for w in weights]
        for w, t in zip(weights, taps):
            np.add.at(made, (rows, np.clip(t, 0, old - 1).astype(int)), w)
    outside = (at < 0) | (at > old - 1)
    return made, outside & (a.coordinate_transformation_mode == "tf_crop_and_resize")


def resized(x: Array, size: Sequence[int], a: Attrs | Options, roi: Sequence[float] = ()) -> Array:
    """An array NC... in another size."""
    made = x.astype("float64")
    rank = x.ndim - 2
    outside = np.zeros([1] * x.ndim, bool)
    for d, new in enumerate(size):
        start, end = (roi[d], roi[d + rank]) if len(roi) else (0.0, 1.0)
        weights, out = axis_weights(x.shape[d + 2], new, a, start, end)
        made = np.moveaxis(np.tensordot(made, weights, (d + 2, 1)), -1, d + 2)
        outside = outside | out.reshape([-1 if n == d + 2 else 1 for n in range(x.ndim)])
    return np.where(outside, a.extrapolation_value, made) if outside.any() else made


def _value(x: Tensor, size: Sequence[int], a: Attrs | Options, dtype: str) -> Tensor:
    """An array NC... in another size as an expression."""
    mode = a.coordinate_transformation_mode
    if a.method == "cubic" or mode == "tf_crop_and_resize":
        raise NoExpression(f"resizing by {a.method} and {mode}")
    if a.method == "linear" and not data_type(dtype).is_floating:
        raise ExpressionError(f"resizing {dtype} by {a.method} has no tensor expression", "cast to float32 before")
    n, c, *space = extents(x)
    one, zero = te.const(1.0, "float32"), te.const(0, "int32")

    def at(i: Element, old: int, new: int) -> Element:
        base, scale = source(0.0, old, new, mode), source(1.0, old, new, mode) - source(0.0, old, new, mode)
        return te.cast(i, "float32") * te.const(scale, "float32") + te.const(base, "float32")

    def inside(place: Element, old: int) -> Element:
        made: Element = te.max(te.min(te.cast(place, "int32"), te.const(old - 1, "int32")), zero)
        return made

    def element(b: Element, k: Element, *i: Element) -> Element:
        if a.method == "nearest_neighbor":
            whole = [nearest(v, old, new, a, te.floordiv) for v, old, new in zip(i, space, size)]
            return te.cast(x[(b, k, *map(inside, whole, space))], dtype)
        values = [at(v, old, new) for v, old, new in zip(i, space, size)]
        total: Element | None = None
        for corner in itertools.product((0, 1), repeat=len(space)):
            weight, places = one, []
            for upper, v, old in zip(corner, values, space):
                low = te.floor(v)
                weight = weight * ((v - low) if upper else one - (v - low))
                places.append(inside(low + one if upper else low, old))
            part = te.cast(x[(b, k, *places)], "float32") * weight
            total = part if total is None else total + part
        return te.cast(total, dtype)

    made: Tensor = te.compute([n, c, *size], element, name="T_resize", tag="injective")
    return made


def _rule(rank: int) -> Rule:
    def rule(a: Attrs, x: TensorType) -> Type:
        plain = "NC" + SPACE[rank]
        require(layouts.convertible(a.layout, plain), lambda: f"resize{rank}d takes layouts that are convertible to {plain}, not {a.layout}")  # fmt: skip
        require(len(x.shape) == len(layouts.layout(a.layout)), lambda: f"the data {x} has no layout {a.layout}")
        for given, known in (
            (a.method, METHODS),
            (a.coordinate_transformation_mode, MODES),
            (a.rounding_method, ROUNDINGS),
        ):
            if given not in known:
                require(False, f"there is no '{given}': {', '.join(k for k in known if k)}")
        require(
            a.size is not None and len(a.size) == rank,
            lambda: f"size {a.size} does not go with {rank} dimensions of {x}",
        )
        n, c, *_ = layouts.converted(x.shape, a.layout, plain)
        return shaped(x, layouts.converted([n, c, *a.size], plain, a.layout), a.out_dtype)

    return rule


def in_plain(call: CallOperator[X], layout: str, x: X, rank: int, function: Callable[[X], X]) -> X:
    """What a function makes of a tensor NC..., of a tensor in any layout."""
    plain = "NC" + SPACE[rank]
    made = function(layouts.transform(call, x, extents(x), layout, plain))
    return layouts.transform(call, made, extents(made), plain, layout)


_OPTIONS: dict[str, object] = {
    "method": "linear", "coordinate_transformation_mode": "half_pixel", "rounding_method": "round", "cubic_alpha": -0.5,
    "cubic_exclude": 0, "extrapolation_value": 0.0, "out_dtype": VOID,
}  # fmt: skip


def _declare_resize(rank: int) -> None:
    plain = "NC" + SPACE[rank]
    kind = record(f"Resize{rank}DAttrs", size=None, roi=None, layout=plain, **_OPTIONS)
    old: tuple[int, ...] = (1, 2, 4, 5, 3)[: rank + 2]
    size = (7, 3, 5)[:rank]
    samples = [
        sample(old, size=size), sample(old, size=size, coordinate_transformation_mode="align_corners"),
        sample(old, size=size, method="nearest_neighbor", coordinate_transformation_mode="asymmetric", rounding_method="floor"),
        sample(old, size=size, method="nearest_neighbor", rounding_method="round_prefer_floor"),
    ]  # fmt: skip
    declare(
        f"image.resize{rank}d", "data, " + ", ".join(kind.fields), _rule(rank), INJECTIVE, *samples, record=kind, build=False, level=5,
        reference=lambda a, t, x: in_plain(References(), a.layout, x, rank, lambda y: resized(y, a.size, a, a.roi or ())),
        compute=lambda a, t, x: in_plain(define, a.layout, x, rank, lambda y: _value(y, a.size, a, t.dtype)),
    )  # fmt: skip

    @builder(f"image.resize{rank}d")
    def resize(
        data: Expr, size: object, roi: object = None, layout: str = plain, method: str = "linear",
        coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", cubic_alpha: float = -0.5,
        cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: object = None,
    ) -> Expr:  # fmt: skip
        """A picture in another size: of the nearest elements, or of those around."""
        options: dict[str, object] = {
            "layout": layout, "method": method, "coordinate_transformation_mode": coordinate_transformation_mode,
            "rounding_method": rounding_method, "cubic_alpha": cubic_alpha, "cubic_exclude": cubic_exclude,
            "extrapolation_value": extrapolation_value, "out_dtype": out_dtype,
        }  # fmt: skip
        wanted, area = several(size), [0.0] * 2 * rank if roi is None else several(roi)
        if isinstance(wanted, Expr) or isinstance(area, Expr):
            given = [v if isinstance(v, Expr) else const(v) for v in (wanted, area)]
            return call(f"dyn.image.resize{rank}d", data, *given, size=None, roi=None, **options)
        return call(f"image.resize{rank}d", data, size=wanted, roi=area, **options)


for _rank in SPACE:
    _declare_resize(_rank)


# --------------------------------------------------------------------------------------------------------------- upsampling


class Options:
    """How a picture gets another size, where it is not said by attributes of its own."""

    cubic_alpha, cubic_exclude, extrapolation_value, rounding_method = -0.5, 0, 0.0, ""

    def __init__(self, method: str, mode: str) -> None:
        self.method, self.coordinate_transformation_mode = method, mode


def how_larger(a: Attrs) -> Options:
    """The options that attributes of upsampling mean."""
    names = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
    mode = getattr(a, "coordinate_transformation_mode", None)
    if mode is None:
        mode = "align_corners" if a.align_corners else "asymmetric"
    return Options(names.get(a.method, a.method), mode)


def larger(extent: Dim, scale: float) -> Dim:
    """An extent times a scale, rounded."""
    return of(lambda n: math.floor(n * scale + 0.5), extent)


def _sizes(a: Attrs, space: Sequence[Dim], scales: Sequence[str]) -> list[Dim]:
    return [larger(n, getattr(a, s)) for n, s in zip(space, scales)]


def _known_sizes(a: Attrs, space: Sequence[int], scales: Sequence[str]) -> list[int]:
    return [d for d in _sizes(a, space, scales) if isinstance(d, int)]


def _upsampled_rule(rank: int, scales: Sequence[str], methods: Sequence[str]) -> Rule:
    plain = "NC" + SPACE[rank]

    def rule(a: Attrs, x: TensorType) -> Type:
        require(a.method in methods, lambda: f"method is one of {', '.join(methods)}, not '{a.method}'")
        require(layouts.convertible(a.layout, plain), lambda: f"upsampling takes layouts that are convertible to {plain}, not {a.layout}")  # fmt: skip
        require(len(x.shape) == len(layouts.layout(a.layout)), lambda: f"the data {x} has no layout {a.layout}")
        n, c, *space = layouts.converted(x.shape, a.layout, plain)
        return shaped(x, layouts.converted([n, c, *_sizes(a, space, scales)], plain, a.layout))

    return rule


def _upsampled(rank: int, scales: Sequence[str]) -> Meanings:
    def reference(a: Attrs, t: TensorType, x: Array) -> Array:
        def one(y: Array) -> Array:
            return resized(y, _known_sizes(a, y.shape[2:], scales), how_larger(a))

        return in_plain(References(), a.layout, x, rank, one)

    def compute(a: Attrs, t: TensorType, x: Tensor) -> Tensor:
        def one(y: Tensor) -> Tensor:
            return _value(y, _known_sizes(a, extents(y)[2:], scales), how_larger(a), t.dtype)

        return in_plain(define, a.layout, x, rank, one)

    return {"reference": reference, "compute": compute}


def _scaled_builder(name: str, signature: Sequence[tuple[str, object]], scales: Sequence[str]) -> None:
    def build(data: Expr, *args: object, **named: object) -> Expr:
        values = {**dict(signature), **dict(zip([n for n, _ in signature], args)), **named}
        given = [values[s] for s in scales]
        if any(isinstance(g, Expr) for g in given):
            exprs = [g if isinstance(g, Expr) else const(g, "float32") for g in given]
            return call(f"dyn.{name}", data, *exprs, **{**values, **dict.fromkeys(scales)})
        return call(name, data, **values)

    build.__name__ = name.rpartition(".")[2]
    build.__doc__ = "A picture so many times as large."
    builder(name)(build)


for _name, _rank, _scales, _methods, _kind in (
    ("nn.upsampling", 2, ("scale_h", "scale_w"), ("nearest_neighbor", "bilinear", "bicubic"), "UpSamplingAttrs"),
    ("nn.upsampling3d", 3, ("scale_d", "scale_h", "scale_w"), ("nearest_neighbor", "trilinear"), "UpSampling3DAttrs"),
):
    _last = {"align_corners": False} if _rank == 2 else {"coordinate_transformation_mode": "half_pixel"}
    _fields = {"layout": "NC" + SPACE[_rank], "method": "nearest_neighbor", **_last}

    _old: tuple[int, ...] = (1, 2, 3, 4, 2)[: _rank + 2]
    _twice = dict.fromkeys(_scales, 2)
    declare(
        _name, ", ".join(["data", *_scales, *_fields]), _upsampled_rule(_rank, _scales, _methods), INJECTIVE, sample(_old, **_twice),
        sample(_old, **_twice, method=_methods[1]), record=record(_kind, **dict.fromkeys(_scales, ...), **_fields), build=False, level=2,
        **_upsampled(_rank, _scales),
    )  # fmt: skip
    _scaled_builder(_name, [*((s, 1) for s in _scales), *_fields.items()], _scales)
