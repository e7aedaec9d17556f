"""Tensors with more around or between their elements, and blocks of places moved to channels or batches and back."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.exprs import Expr as Element
from compassc.operators.calls import CallOperator, X
from compassc.operators.declare import sample
from compassc.operators.expressions import define
from compassc.relay import layouts
from compassc.relay.attributes import Attrs
from compassc.relay.builders import builder, call
from compassc.relay.expr import Expr, const
from compassc.relay.ops.declare import INJECTIVE, declare, record
from compassc.relay.ops.elementwise import NUMBERS
from compassc.relay.ops.relations import of, require, shaped
from compassc.relay.ops.shapes import extents, listed
from compassc.relay.types import Dim, TensorType, Type
from compassc.te.tensor import Tensor

Widths = Sequence[Sequence[int]]


def _wider(x: TensorType, widths: Widths) -> TensorType:
    require(len(widths) == len(x.shape), lambda: f"{x} needs a width before and after each axis, not {tuple(widths)}")
    require(all(len(w) == 2 for w in widths), lambda: f"pad_width has two numbers for each axis, not {tuple(widths)}")
    made = [of(lambda n: n + w[0] + w[1], n) if any(w) else n for n, w in zip(x.shape, widths)]  # noqa: B023
    require(
        all(not isinstance(n, int) or n >= 0 for n in made), lambda: f"pad_width {tuple(widths)} cuts more than {x} has"
    )
    return shaped(x, made)


def padded(x: Array, widths: Widths, mode: str, value: Array | int = 0) -> Array:
    """An array with more around it; where a width is negative, less."""
    cut = x[tuple(slice(max(-b, 0), n - max(-e, 0)) for n, (b, e) in zip(x.shape, widths))]
    more = [(max(b, 0), max(e, 0)) for b, e in widths]
    if mode == "constant":
        return np.pad(cut, more, constant_values=np.asarray(value).astype(x.dtype))
    made: Array = np.pad(cut, more, mode)  # type: ignore[call-overload]  # the modes are NumPy's
    return made


def _source(place: Element, extent: int, mode: str) -> Element:
    """The place of the element that lies at a place outside, one step beyond at most one whole length."""
    if mode == "edge":
        made: Element = te.max(te.min(place, extent - 1), 0)
        return made
    last = extent - 1 if mode == "reflect" else extent
    front = te.Select(place < 0, (-place) if mode == "reflect" else (-place - 1), place)
    return te.Select(front > extent - 1, 2 * last - front - (0 if mode == "reflect" else 1), front)


def _padded_value(x: Tensor, widths: Widths, mode: str, value: Element | None) -> Tensor:
    shape = extents(x)
    if mode == "constant" and min(n for w in widths for n in w) >= 0:
        return define("pad", x, [b for b, _ in widths], [e for _, e in widths], value)

    def element(*i: Element) -> Element:
        places = [v - b if b else v for v, (b, _) in zip(i, widths)]
        if mode != "constant":
            return x(*(_source(p, n, mode) if any(w) else p for p, n, w in zip(places, shape, widths)))
        tests = [t for p, n, (b, e) in zip(places, shape, widths) for t in ([p >= 0] * (b > 0) + [p < n] * (e > 0))]
        return te.if_then_else(te.all(*tests), x[tuple(places)], value) if tests else x[tuple(places)]

    made = [n + b + e for n, (b, e) in zip(shape, widths)]
    found: Tensor = te.compute(made, element, name="T_pad", tag="injective")
    return found


MODES = ("constant", "edge", "reflect")


def _pad_rule(a: Attrs, x: TensorType, value: TensorType) -> Type:
    require(a.pad_mode in MODES, lambda: f"pad_mode is one of {', '.join(MODES)}, not '{a.pad_mode}'")
    require(
        prod(d for d in value.shape if isinstance(d, int)) == 1, lambda: f"pad_value must be a scalar, it is {value}"
    )
    return _wider(x, a.pad_width)


def _pad_expression(a: Attrs, t: TensorType, x: Tensor, value: Tensor) -> Tensor:
    filled = te.cast(value[tuple([0] * value.ndim)], t.dtype)
    return _padded_value(x, a.pad_width, a.pad_mode, filled)


declare(
    "nn.pad", 'data, pad_value, pad_width, pad_mode="constant"', _pad_rule, INJECTIVE,
    sample((3, 4), (), pad_width=[[1, 2], [0, 3]]), sample((3, 4), (), pad_width=[[-1, 2], [0, -2]]),
    sample((3, 4), (), pad_width=[[2, 1], [1, 3]], pad_mode="reflect"), sample((3, 4), (), pad_width=[[2, 1], [5, 3]], pad_mode="edge"),
    record=record("PadAttrs", pad_width=..., pad_mode="constant"), build=False, level=2, types=("float32", "int8"),
    reference=lambda a, t, x, value: padded(x, a.pad_width, a.pad_mode, value.reshape(())), compute=_pad_expression,
)  # fmt: skip


@builder("nn.pad")
def pad(data: Expr, pad_width: object, pad_value: object = 0, pad_mode: str = "constant") -> Expr:
    """A tensor with more around it: so many elements before and after each axis; less where it is negative."""
    value = pad_value if isinstance(pad_value, Expr) else const(pad_value)
    widths = listed(pad_width)
    if isinstance(widths, Expr):
        return call("dyn.nn.pad", data, widths, value, pad_width=None, pad_mode=pad_mode)
    return call("nn.pad", data, value, pad_width=[listed(w) for w in widths], pad_mode=pad_mode)


def _mirrored(a: Attrs, x: TensorType) -> Type:
    require(a.mode in ("SYMMETRIC", "REFLECT"), lambda: f"mode is SYMMETRIC or REFLECT, not '{a.mode}'")
    most = 0 if a.mode == "SYMMETRIC" else 1
    for n, w in zip(x.shape, a.pad_width):
        require(
            not isinstance(n, int) or max(w) <= n - most,
            lambda: f"pad_width {a.pad_width} is wider than the mirrored {x}",
        )
    return _wider(x, a.pad_width)


declare(
    "nn.mirror_pad", 'data, pad_width, mode="SYMMETRIC"', _mirrored, INJECTIVE, sample((3, 4), pad_width=[[2, 1], [1, 4]]),
    sample((3, 4), pad_width=[[2, 1], [1, 3]], mode="REFLECT"), record=record("MirrorPadAttrs", mode="SYMMETRIC", pad_width=...),
    reference=lambda a, t, x: padded(x, a.pad_width, a.mode.lower()), level=2,
    compute=lambda a, t, x: _padded_value(x, a.pad_width, a.mode.lower(), None), types=NUMBERS,
)  # fmt: skip


def _dilated(a: Attrs, x: TensorType) -> Type:
    require(len(a.strides) == len(x.shape), lambda: f"{x} needs {len(x.shape)} strides, not {a.strides}")
    return shaped(x, [of(lambda n: (n - 1) * s + 1, n) for n, s in zip(x.shape, a.strides)])  # noqa: B023


def _dilate(a: Attrs, t: TensorType, x: Array) -> Array:
    made = np.full([(n - 1) * s + 1 for n, s in zip(x.shape, a.strides)], np.asarray(a.dilation_value).astype(x.dtype))
    made[tuple(slice(None, None, s) for s in a.strides)] = x
    return made


def _dilate_value(a: Attrs, t: TensorType, x: Tensor) -> Tensor:
    def element(*i: Element) -> Element:
        tests = [v % s == 0 for v, s in zip(i, a.strides) if s > 1]
        own = x[tuple(v // s if s > 1 else v for v, s in zip(i, a.strides))]
        return te.if_then_else(te.all(*tests), own, te.const(a.dilation_value, t.dtype)) if tests else own

    made: Tensor = te.compute(list(t.concrete_shape), element, name="T_dilate", tag="injective")
    return made


declare(
    "nn.dilate", "data, strides, dilation_value=0.0", _dilated, INJECTIVE, sample((2, 3), strides=[1, 2], dilation_value=1.5),
    record=record("DilateAttrs", strides=(1, 1), dilation_value=0.0), reference=_dilate, compute=_dilate_value, level=10,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------------ blocks


def _plain(a: Attrs, x: TensorType) -> list[Dim]:
    require(len(x.shape) == 4 and layouts.convertible(a.layout, "NCHW"), lambda: f"{x} has no layout {a.layout}, which must be NCHW or NHWC")  # fmt: skip
    return layouts.converted(x.shape, a.layout, "NCHW")


def _to_space_rule(a: Attrs, x: TensorType) -> Type:
    n, c, h, w = _plain(a, x)
    b = a.block_size
    require(
        not isinstance(c, int) or c % b**2 == 0, lambda: f"{c} channels of {x} are not made of blocks of {b} by {b}"
    )
    require(a.mode in ("DCR", "CRD"), lambda: f"mode is DCR or CRD, not '{a.mode}'")
    shape = [n, of(lambda m: m // b**2, c), of(lambda m: m * b, h), of(lambda m: m * b, w)]
    return shaped(x, layouts.converted(shape, "NCHW", a.layout))


def _to_space(call: CallOperator[X], a: Attrs, t: TensorType, x: X) -> X:
    x = layouts.transform(call, x, extents(x), a.layout, "NCHW")
    (n, c, h, w), b = extents(x), a.block_size
    parts, order = ([n, b, b, c // b**2, h, w], [0, 3, 4, 1, 5, 2]) if a.mode == "DCR" else ([n, c // b**2, b, b, h, w], [0, 1, 4, 2, 5, 3])  # fmt: skip
    made = call("reshape", call("transpose", call("reshape", x, parts), order), [n, c // b**2, h * b, w * b])
    return layouts.transform(call, made, extents(made), "NCHW", a.layout)


def _to_depth_rule(a: Attrs, x: TensorType) -> Type:
    n, c, h, w = _plain(a, x)
    b = a.block_size
    require(not any(isinstance(m, int) and m % b for m in (h, w)), lambda: f"{h} by {w} places of {x} are not made of blocks of {b}")  # fmt: skip
    shape = [n, of(lambda m: m * b**2, c), of(lambda m: m // b, h), of(lambda m: m // b, w)]
    return shaped(x, layouts.converted(shape, "NCHW", a.layout))


def _to_depth(call: CallOperator[X], a: Attrs, t: TensorType, x: X) -> X:
    x = layouts.transform(call, x, extents(x), a.layout, "NCHW")
    (n, c, h, w), b = extents(x), a.block_size
    parts = call("transpose", call("reshape", x, [n, c, h // b, b, w // b, b]), [0, 3, 5, 1, 2, 4])
    made = call("reshape", parts, [n, c * b**2, h // b, w // b])
    return layouts.transform(call, made, extents(made), "NCHW", a.layout)


_blocks = record("SubPixelAttrs", block_size=1, layout="NCHW", mode="DCR")
declare(
    "nn.depth_to_space", 'data, block_size, layout="NCHW", mode="DCR"', _to_space_rule, INJECTIVE, sample((1, 8, 2, 3), block_size=2),
    sample((1, 8, 2, 3), block_size=2, mode="CRD"), sample((1, 2, 3, 8), block_size=2, layout="NHWC"), record=_blocks,
    body=_to_space, level=5,
)  # fmt: skip
declare("nn.space_to_depth", 'data, block_size, layout="NCHW"', _to_depth_rule, INJECTIVE, sample((1, 2, 4, 6), block_size=2),
        record=_blocks, body=_to_depth, level=5)  # fmt: skip


def _to_batch_rule(a: Attrs, x: TensorType) -> Type:
    blocks = a.block_shape
    require(len(blocks) == len(a.paddings) < len(x.shape), lambda: f"{x} does not go with blocks {blocks} and paddings {a.paddings}")  # fmt: skip
    space: list[Dim] = []
    for n, b, (low, high) in zip(x.shape[1:], blocks, a.paddings):
        require(not isinstance(n, int) or (n + low + high) % b == 0, lambda: f"{n} of {x} with paddings {low}, {high} is not made of blocks of {b}")  # noqa: B023  # fmt: skip
        space.append(of(lambda m: (m + low + high) // b, n))  # noqa: B023
    batch = of(lambda m: m * prod(blocks), x.shape[0])
    return shaped(x, [batch, *space, *x.shape[1 + len(blocks) :]])


def _to_batch(call: CallOperator[X], a: Attrs, t: TensorType, x: X) -> X:
    m, rank = len(a.block_shape), x.ndim
    before, after = ([0, *[p[k] for p in a.paddings], *[0] * (rank - 1 - m)] for k in (0, 1))
    x = call("pad", x, before, after, a.pad_value)
    n, *shape = extents(x)
    parts = [v for s, b in zip(shape, a.block_shape) for v in (s // b, b)]
    x = call("reshape", x, [n, *parts, *shape[m:]])
    inner = [2 + 2 * k for k in range(m)]
    x = call("transpose", x, [*inner, 0, *[1 + 2 * k for k in range(m)], *range(1 + 2 * m, rank + m)])
    return call("reshape", x, [n * prod(a.block_shape), *[s // b for s, b in zip(shape, a.block_shape)], *shape[m:]])


declare(
    "nn.space_to_batch_nd", "data, block_shape, paddings, pad_value=0", _to_batch_rule, INJECTIVE,
    sample((2, 3, 4, 2), block_shape=[2, 2], paddings=[[0, 1], [2, 0]]), record=record("SpaceToBatchNDAttrs", block_shape=(1, 1), paddings=..., pad_value=0.0),
    body=_to_batch, level=5,
)  # fmt: skip


def _from_batch_rule(a: Attrs, x: TensorType) -> Type:
    blocks = a.block_shape
    require(
        len(blocks) == len(a.crops) < len(x.shape), lambda: f"{x} does not go with blocks {blocks} and crops {a.crops}"
    )
    batch = x.shape[0]
    require(not isinstance(batch, int) or batch % prod(blocks) == 0, lambda: f"a batch of {batch} is not made of blocks {blocks}")  # fmt: skip
    space = [of(lambda m: m * b - c[0] - c[1], n) for n, b, c in zip(x.shape[1:], blocks, a.crops)]  # noqa: B023
    return shaped(x, [of(lambda m: m // prod(blocks), batch), *space, *x.shape[1 + len(blocks) :]])


def _from_batch(call: CallOperator[X], a: Attrs, t: TensorType, x: X) -> X:
    m, (n, *shape) = len(a.block_shape), extents(x)
    batch = n // prod(a.block_shape)
    x = call("reshape", x, [*a.block_shape, batch, *shape])
    x = call("transpose", x, [m, *[v for k in range(m) for v in (m + 1 + k, k)], *range(2 * m + 1, m + 1 + len(shape))])
    x = call("reshape", x, [batch, *[s * b for s, b in zip(shape, a.block_shape)], *shape[m:]])
    ends = [s * b - c[1] for s, b, c in zip(shape, a.block_shape, a.crops)]
    return call("strided_slice", x, [c[0] for c in a.crops], ends, [1] * m, list(range(1, m + 1)))


declare(
    "nn.batch_to_space_nd", "data, block_shape, crops", _from_batch_rule, INJECTIVE,
    sample((8, 2, 3, 2), block_shape=[2, 2], crops=[[0, 1], [2, 0]]), record=record("BatchToSpaceNDAttrs", block_shape=(1, 1), crops=...),
    body=_from_batch, level=5,
)  # fmt: skip
