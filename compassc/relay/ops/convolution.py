"""Convolutions of one to three dimensions, in any layout, in groups, transposed, deformed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as tuples
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compassc.ir.dtypes import dtype as data_type
from compassc.operators.calls import CallOperator, References, X
from compassc.operators.convolution import (
    FIRST,
    convolution,
    convolved,
    depthwise_convolution,
    transposed,
    transposed_convolution,
)
from compassc.operators.declare import sample
from compassc.operators.expressions import define
from compassc.relay import layouts
from compassc.relay.attributes import Attrs, Record
from compassc.relay.builders import BUILDERS, builder, call
from compassc.relay.expr import Expr
from compassc.relay.ops.declare import ANCHOR, VOID, Express, Prepare, Rule, declare, record
from compassc.relay.ops.relations import differ, fail, of, product, require, shaped
from compassc.relay.ops.shapes import extents
from compassc.relay.types import Dim, IncompleteType, Related, TensorType, Type
from compassc.te.tensor import Tensor

SPACE = {1: "W", 2: "HW", 3: "DHW"}


def several(value: Any, count: int) -> tuple[int, ...]:
    """A number for each of so many axes."""
    return tuple(value) if isinstance(value, Sequence) else (value,) * count


def above_0(what: str, value: object, rank: int) -> tuple[int, ...]:
    """A number above 0 for each of so many axes. RelationError for others."""
    given = several(value, rank)
    if len(given) != rank or not all(isinstance(n, int) and n > 0 for n in given):
        wanted = "a whole number" if rank == 1 else f"1 or {rank} whole numbers"
        raise fail(f"{what} {value!r} must be {wanted} above 0")
    return given


def both_ends(padding: object, rank: int) -> tuple[int, ...]:
    """Elements before each axis, then behind each: of one number, one for each axis, or both."""
    given = several(padding, 1)
    given = given * rank if len(given) == 1 else given
    given = given * 2 if len(given) == rank else given
    if len(given) != 2 * rank:
        raise fail(f"padding {padding!r} does not go with {rank} dimensions", f"give 1, {rank} or {2 * rank} numbers")
    if not all(isinstance(n, int) and n >= 0 for n in given):
        raise fail(f"padding {padding!r} must be whole numbers that are not below 0")
    return given


def numeric(data: TensorType) -> str:
    """The type of sums of products: at least 32 bits."""
    kind = data_type(data.dtype)
    return data.dtype if kind.is_floating or kind.bits >= 32 else "int32"


def exact(x: Array) -> Array:
    """An array wide enough for sums of products."""
    return x.astype("float64" if x.dtype.kind not in "iub" else "int64")


# --------------------------------------------------------------------------------------------------------------- type rules


def _layouts(a: Attrs, rank: int, weights: str) -> tuple[str, str, str]:
    """The layouts that data and kernel are brought to; those of the call must be convertible to them."""
    data, kernel = "NC" + SPACE[rank], ("G" if "G" in a.kernel_layout else "") + weights + SPACE[rank]
    out = a.out_layout or a.data_layout
    for what, given, wanted in (
        ("input", a.data_layout, data),
        ("kernel", a.kernel_layout, kernel),
        ("output", out, data),
    ):
        require(layouts.convertible(given, wanted), lambda: f"conv{rank}d only support {what} layouts that are convertible from {wanted}. The provided layout is: {given}")  # fmt: skip  # noqa: B023
    return data, kernel, out


def _in_order(t: TensorType, source: str, to: str, what: str) -> list[Dim]:
    require(len(t.shape) == len(layouts.layout(source)), lambda: f"the {what} {t} has no layout {source}")
    return layouts.converted(t.shape, source, to)


def _weight(a: Attrs, data: TensorType, weight: Type, shape: Sequence[Dim], layout: str) -> Related:
    """That the weight has a shape, given in a plain layout."""
    kind = weight.dtype if isinstance(weight, TensorType) else data.dtype
    return Related(None, {1: TensorType(layouts.converted(shape, layout, a.kernel_layout), kind)})


def _agree(a: Attrs, weight: TensorType, channels: Dim, window: Sequence[Dim]) -> None:
    if a.kernel_size is not None:
        sizes = several(a.kernel_size, len(window))
        require(not any(map(differ, sizes, window)), lambda: f"kernel_size {tuple(sizes)} does not match the weight {weight}")  # fmt: skip
    if a.channels is not None:
        require(not differ(a.channels, channels), lambda: f"channels {a.channels} do not match the weight {weight}")


def _windows(d: Sequence[Dim], a: Attrs, window: Sequence[Dim]) -> list[Dim]:
    """The extents of a convolution's result."""
    rank = len(window)
    strides, dilation = above_0("strides", a.strides, rank), above_0("dilation", a.dilation, rank)
    pads = both_ends(a.padding, rank)
    made: list[Dim] = []
    for n in range(rank):
        pad, s, l = pads[n] + pads[n + rank], strides[n], dilation[n]
        size = of(lambda m, k: (m + pad - (k - 1) * l - 1) // s + 1, d[n], window[n])  # noqa: B023
        require(not isinstance(size, int) or size > 0, lambda: f"a window of {window[n]} is larger than {d[n]} with padding {pad}")  # fmt: skip  # noqa: B023
        made.append(size)
    return made


def conv_rule(rank: int) -> Rule:
    """The type rule of convolutions of so many dimensions."""

    def rule(a: Attrs, data: TensorType, weight: Type) -> Related | None:
        plain, kernel, out = _layouts(a, rank, "OI")
        n, c, *space = _in_order(data, a.data_layout, plain, "data")
        above_0("groups", a.groups, 1)
        typed = isinstance(weight, TensorType)
        if a.groups > 1 and not typed:
            return None
        own = of(lambda m: m // a.groups, c)
        if a.kernel_size is not None and a.channels is not None:
            window: Sequence[Dim] = several(a.kernel_size, rank)
            channels: Dim = a.channels
            shape: list[Dim] = [a.channels, own, *window]
            if "G" in kernel:
                shape = [a.groups, a.channels // a.groups, own, *window]
            elif isinstance(weight, TensorType) and _depthwise(
                a, c, _in_order(weight, a.kernel_layout, kernel, "weight")
            ):
                shape = [c, of(lambda m: a.channels // m, c), *window]
            found = _weight(a, data, weight, shape, kernel)
        else:
            if not isinstance(weight, TensorType):
                return None
            shape = _in_order(weight, a.kernel_layout, kernel, "weight")
            grouped = shape[1:] if "G" in kernel else shape
            window, inputs = grouped[2:], grouped[1]
            channels = product(shape[:2]) if "G" in kernel else grouped[0]
            if "G" not in kernel and _depthwise(a, c, shape):
                channels = product(shape[:2])
            else:
                require(not differ(own, inputs), lambda: f"{c} channels of the data {data} in {a.groups} groups do not match the weight {weight}")  # fmt: skip
            _agree(a, weight, channels, window)
            found = Related(None, {})
        made = [n, channels, *_windows(space, a, window)]
        result = shaped(data, layouts.converted(made, plain, out), a.out_dtype or data.dtype)
        return Related(result, found.inputs)

    return rule


def _depthwise(a: Attrs, channels: Dim, kernel: Sequence[Dim]) -> bool:
    """Whether each channel has its own windows: a kernel of one group for each channel."""
    return bool(a.groups > 1 and a.groups == channels and kernel[0] == a.groups)


def transposed_rule(rank: int) -> Rule:
    """The type rule of transposed convolutions of so many dimensions."""

    def rule(a: Attrs, data: TensorType, weight: Type) -> Related | None:
        plain, kernel, out = _layouts(a, rank, "IO")
        n, c, *space = _in_order(data, a.data_layout, plain, "data")
        inputs: dict[int, Type] = {}
        if a.kernel_size is not None and a.channels is not None:
            window: Sequence[Dim] = several(a.kernel_size, rank)
            channels: Dim = a.channels
            inputs = dict(_weight(a, data, weight, [c, a.channels // a.groups, *window], kernel).inputs)
        elif isinstance(weight, IncompleteType):
            return None
        else:
            assert isinstance(weight, TensorType)
            own, each, *window = _in_order(weight, a.kernel_layout, kernel, "weight")
            channels = of(lambda m: m * a.groups, each)
            require(not differ(own, c), lambda: f"{c} channels of the data {data} do not match the weight {weight}")
            _agree(a, weight, channels, window)
        pads, more = both_ends(a.padding, rank), several(a.output_padding, rank)
        strides, dilation = above_0("strides", a.strides, rank), above_0("dilation", a.dilation, rank)
        made: list[Dim] = [n, channels]
        for d in range(rank):
            s, l, less = strides[d], dilation[d], pads[d] + pads[d + rank] - more[d]
            made.append(of(lambda m, k: (m - 1) * s + (k - 1) * l + 1 - less, space[d], window[d]))  # noqa: B023
        return Related(shaped(data, layouts.converted(made, plain, out), a.out_dtype or data.dtype), inputs)

    return rule


# ------------------------------------------------------------------------------------------------------- what they compute


def _plainly(call: CallOperator[X], a: Attrs, x: X, w: X, rank: int, weights: str) -> tuple[X, X, str]:
    """Data and kernel in plain layouts, a kernel of groups or of windows for each channel as one of all outputs."""
    plain, kernel, _ = _layouts(a, rank, weights)
    x = layouts.transform(call, x, extents(x), a.data_layout, plain)
    w = layouts.transform(call, w, extents(w), a.kernel_layout, kernel)
    shape = extents(w)
    if "G" in kernel:
        w = call("reshape", w, [shape[0] * shape[1], *shape[2:]])
    elif weights == "OI" and _depthwise(a, extents(x)[1], shape) and shape[1] > 1:
        w = call("reshape", w, [shape[0] * shape[1], 1, *shape[2:]])
    return x, w, plain


def _window_options(a: Attrs, rank: int) -> tuple[list[int], list[int], list[int]]:
    return list(several(a.strides, rank)), list(both_ends(a.padding, rank)), list(several(a.dilation, rank))


def conv_reference(rank: int) -> Callable[[Attrs, TensorType, Array, Array], Array]:
    """Convolutions of arrays: exact for whole numbers, in float64 for reals."""

    def evaluate(a: Attrs, t: TensorType, x: Array, w: Array) -> Array:
        calls = References()
        x, w, plain = _plainly(calls, a, exact(x), exact(w), rank, "OI")
        made = convolved(x, w, *_window_options(a, rank), a.groups)
        return layouts.transform(calls, made, made.shape, plain, a.out_layout or a.data_layout)

    return evaluate


_DIRECT = {("NCHW", "OIHW"): "conv2d_nchw", ("NHWC", "HWIO"): "conv2d_nhwc", ("NCW", "OIW"): "conv1d_ncw", ("NWC", "WIO"): "conv1d_nwc"}  # fmt: skip
_DIRECT_DEPTHWISE = {("NCHW", "OIHW"): "depthwise_conv2d_nchw", ("NHWC", "HWOI"): "depthwise_conv2d_nhwc"}


def conv_compute(rank: int) -> Express:
    """Convolutions as expressions: those that operators of tensors have, or in plain layouts."""

    def express(a: Attrs, t: TensorType, x: Tensor, w: Tensor) -> Tensor:
        pair = (a.data_layout, a.kernel_layout)
        strides, pads, dilation = _window_options(a, rank)
        kind = numeric(t)
        if not a.out_layout or a.out_layout == a.data_layout:
            plain, kernel, _ = _layouts(a, rank, "OI")
            c = extents(x)[layouts.layout(a.data_layout).index_of("C")]
            own = layouts.converted(extents(w), a.kernel_layout, kernel)
            if "G" not in kernel and _depthwise(a, c, own) and pair in _DIRECT_DEPTHWISE:
                return define(_DIRECT_DEPTHWISE[pair], x, w, strides, pads, dilation, kind)
            if pair in _DIRECT and a.groups == 1:
                return define(_DIRECT[pair], x, w, strides, pads, dilation, kind)
            if pair in _DIRECT and rank == 2 and not _depthwise(a, c, own):
                return define("group_" + _DIRECT[pair], x, w, strides, pads, dilation, a.groups, kind)
        x, w, plain = _plainly(define, a, x, w, rank, "OI")
        tag = f"conv{rank}d_{plain.lower()}"
        if a.groups > 1 and extents(x)[1] == a.groups and rank == 2:
            w = define("reshape", w, [a.groups, extents(w)[0] // a.groups, *extents(w)[2:]])
            made = depthwise_convolution(x, w, strides, pads, dilation, kind, "depthwise_conv2d_nchw", FIRST)
        else:
            made = convolution(x, w, strides, pads, dilation, a.groups, kind, tag, FIRST)
        return layouts.transform(define, made, extents(made), plain, a.out_layout or a.data_layout)

    return express


def transposed_reference(rank: int) -> Callable[[Attrs, TensorType, Array, Array], Array]:
    """Transposed convolutions of arrays."""

    def evaluate(a: Attrs, t: TensorType, x: Array, w: Array) -> Array:
        calls = References()
        x, w, plain = _plainly(calls, a, exact(x), exact(w), rank, "IO")
        strides, pads, dilation = _window_options(a, rank)
        made = transposed(x, w, strides, pads, list(several(a.output_padding, rank)), dilation, a.groups)
        return layouts.transform(calls, made, made.shape, plain, a.out_layout or a.data_layout)

    return evaluate


def transposed_compute(rank: int) -> Express:
    """Transposed convolutions as expressions."""

    def express(a: Attrs, t: TensorType, x: Tensor, w: Tensor) -> Tensor:
        x, w, plain = _plainly(define, a, x, w, rank, "IO")
        strides, pads, dilation = _window_options(a, rank)
        more, tag = list(several(a.output_padding, rank)), f"conv{rank}d_transpose_{plain.lower()}"
        made = transposed_convolution(x, w, strides, pads, dilation, a.groups, numeric(t), more, tag)
        return layouts.transform(define, made, extents(made), plain, a.out_layout or a.data_layout)

    return express


# ------------------------------------------------------------------------------------------------------------- declarations


def prepared(rank: int) -> Prepare:
    """What builders do with attributes: one number for each axis, padding for both ends of each."""

    def prepare(values: dict[str, object]) -> None:
        values["padding"] = both_ends(values["padding"], rank)
        for name in ("strides", "dilation", "kernel_size", "output_padding"):
            if values.get(name) is not None:
                values[name] = several(values[name], rank)

    return prepare


def _fields(rank: int, kernel: str) -> dict[str, object]:
    return {
        "strides": (1,) * rank, "padding": (0,) * (rank if rank > 1 else 2), "dilation": (1,) * rank, "groups": 1, "channels": None,
        "kernel_size": None, "data_layout": "NC" + SPACE[rank], "kernel_layout": kernel + SPACE[rank], "out_layout": "",
        "out_dtype": VOID,
    }  # fmt: skip


def _signature(rank: int, kernel: str, more: str = "") -> str:
    ones, zeros = ((1,) * rank, (0,) * rank) if rank > 1 else (1, 0)
    return (
        f"data, weight, strides={ones}, padding={zeros}, dilation={ones}, groups=1, channels=None, kernel_size=None, "
        f'data_layout="NC{SPACE[rank]}", kernel_layout="{kernel}{SPACE[rank]}", out_layout=""{more}, out_dtype=""'
    )


_RECORDS: dict[int, Record] = {r: record(f"Conv{r}DAttrs", **_fields(r, "OI")) for r in SPACE}
_CONV_SAMPLES = {
    1: (sample((2, 3, 9), (4, 3, 3), strides=[2], padding=[1, 0]), sample((1, 9, 4), (3, 2, 6), groups=2, data_layout="NWC", kernel_layout="WIO")),
    2: (
        sample((1, 3, 6, 7), (4, 3, 3, 2), strides=[2, 1], padding=[1, 0, 0, 1], dilation=[1, 2]),
        sample((1, 4, 5, 5), (4, 2, 3, 3), groups=4, padding=[1, 1]),
        sample((1, 4, 5, 5), (6, 2, 3, 3), groups=2), sample((1, 5, 5, 3), (3, 3, 3, 4), data_layout="NHWC", kernel_layout="HWIO"),
        sample((1, 5, 5, 4), (3, 3, 4, 1), groups=4, data_layout="NHWC", kernel_layout="HWOI"),
        sample((1, 2, 5, 5, 4), (2, 2, 3, 3, 4, 8), data_layout="NCHW4c", kernel_layout="OIHW4i8o", out_layout="NCHW8c"),
    ),
    3: (sample((1, 2, 4, 5, 4), (3, 2, 2, 3, 3), padding=[0, 1, 1]),),
}  # fmt: skip
for _rank in SPACE:
    declare(
        f"nn.conv{_rank}d", _signature(_rank, "OI"), conv_rule(_rank), ANCHOR, *_CONV_SAMPLES[_rank], record=_RECORDS[_rank],
        partial="weight", prepare=prepared(_rank), reference=conv_reference(_rank), compute=conv_compute(_rank), level=2,
        types=("float32", "int8"),
    )  # fmt: skip
    _more = {"channels": None, "kernel_size": None, "strides": (1,) * _rank, "output_padding": (0,) * _rank}
    declare(
        f"nn.conv{_rank}d_transpose",
        _signature(_rank, "IO", f", output_padding={(0,) * _rank if _rank > 1 else 0}"), transposed_rule(_rank), ANCHOR,
        *{1: (sample((1, 3, 5), (3, 2, 3), strides=[2], padding=[1, 0], output_padding=[1]),),
          2: (sample((1, 3, 4, 5), (3, 2, 3, 3), strides=[2, 1], padding=[1, 1], output_padding=[1, 0]),
              sample((1, 4, 3, 3), (4, 3, 2, 2), groups=2, dilation=[2, 1]),
              sample((1, 4, 3, 2), (3, 3, 2, 2), data_layout="NHWC", kernel_layout="HWIO", strides=[2, 2])),
          3: (sample((1, 2, 2, 3, 3), (2, 3, 2, 2, 2), strides=[1, 2, 1]),)}[_rank],
        record=record(f"Conv{_rank}DTransposeAttrs", **{**_more, **_fields(_rank, "IO"), "padding": (0,) * _rank}), partial="weight",
        prepare=prepared(_rank), reference=transposed_reference(_rank), compute=transposed_compute(_rank), level=2,
    )  # fmt: skip
_PACKED = 'data, kernel, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=None, kernel_size=None, data_layout="NCHW8c", kernel_layout="", out_layout="", out_dtype=""'  # fmt: skip
for _name in ("nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc"):
    declare(
        _name, _PACKED, conv_rule(2), ANCHOR,
        *((sample((1, 2, 5, 5, 4), (2, 2, 3, 3, 4, 8), data_layout="NCHW4c", kernel_layout="OIHW4i8o", out_layout="NCHW8c"),)
          if "depth" not in _name else (sample((1, 2, 5, 5, 4), (2, 1, 3, 3, 1, 4), data_layout="NCHW4c", kernel_layout="OIHW1i4o", groups=8),)),
        record=_RECORDS[2], partial="kernel", prepare=prepared(2), reference=conv_reference(2), compute=conv_compute(2), level=10,
    )  # fmt: skip
    BUILDERS[_name.lower()] = BUILDERS.pop(_name)


# ------------------------------------------------------------------------------------------- gradients, sampled elsewhere


def _of_weight(a: Attrs, grad: TensorType, data: TensorType) -> Type:
    require(a.data_layout == "NCHW" and a.kernel_layout in ("OIHW", "HWIO"), lambda: f"the layouts are NCHW and OIHW, not {a.data_layout} and {a.kernel_layout}")  # fmt: skip
    require(a.kernel_size is not None, "kernel_size must be given")
    channels = grad.shape[1]
    inputs = of(lambda n: n // a.groups, data.shape[1])
    shape = layouts.converted([channels, inputs, *a.kernel_size], "OIHW", a.kernel_layout)
    return shaped(data, shape, a.out_dtype or grad.dtype)


def _weight_gradient(a: Attrs, t: TensorType, grad: Array, x: Array) -> Array:
    strides, (top, left, bottom, right), dilation = _window_options(a, 2)
    x, grad = np.pad(exact(x), ((0, 0), (0, 0), (top, bottom), (left, right))), exact(grad)
    each, own = grad.shape[1] // a.groups, x.shape[1] // a.groups
    made = np.zeros((grad.shape[1], own, *a.kernel_size))
    for g, at in ((i[0], i[1:]) for i in np.ndindex(a.groups, *a.kernel_size)):
        cut = [slice(p * l, p * l + (n - 1) * s + 1, s) for p, l, n, s in zip(at, dilation, grad.shape[2:], strides)]
        part = x[(slice(None), slice(g * own, (g + 1) * own), *cut)]
        outs = slice(g * each, (g + 1) * each)
        made[(outs, slice(None), *at)] = np.tensordot(grad[:, outs], part, ((0, 2, 3), (0, 2, 3)))
    return layouts.transform(References(), made, made.shape, "OIHW", a.kernel_layout)


declare(
    "nn.conv2d_backward_weight", "grad, data", _of_weight, ANCHOR, sample((1, 4, 3, 3), (1, 3, 6, 6), strides=[2, 2], padding=[1, 1], kernel_size=[3, 3]),
    level=2, record=_RECORDS[2], reference=_weight_gradient, build=False,
)  # fmt: skip


@builder("nn.conv2d_backward_weight")
def conv2d_backward_weight(
    grad: Expr, data: Expr, strides: object = (1, 1), padding: object = (0, 0), dilation: object = (1, 1), groups: int = 1, channels: object = None,
    kernel_size: object = None, grad_layout: str = "NCHW", data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_dtype: str = "",
) -> Expr:  # fmt: skip
    """The gradient of a convolution's weight; `grad_layout`: that of the gradient of its result."""
    values = {
        "strides": strides, "padding": padding, "dilation": dilation, "groups": groups, "channels": channels, "kernel_size": kernel_size,
        "data_layout": data_layout, "kernel_layout": kernel_layout, "out_layout": grad_layout, "out_dtype": out_dtype,
    }  # fmt: skip
    prepared(2)(values)
    return call("nn.conv2d_backward_weight", grad, data, **values)


def _deformed(a: Attrs, data: TensorType, offset: Type, weight: Type) -> Related | None:
    found = conv_rule(2)(a, data, weight)
    if not isinstance(found, Related) or not isinstance(found.result, TensorType):
        return None
    n, _, *space = layouts.converted(found.result.shape, a.out_layout or a.data_layout, "NCHW")
    window = a.kernel_size
    if window is None:
        assert isinstance(weight, TensorType)
        window = layouts.converted(weight.shape, a.kernel_layout, "OIHW")[2:]
    wanted = layouts.converted([n, product([2, *window, a.deformable_groups]), *space], "NCHW", a.data_layout)
    if not isinstance(offset, TensorType):
        return Related(found.result, {1: shaped(data, wanted), **({2: found.inputs[1]} if found.inputs else {})})
    fits = len(offset.shape) == 4 and not any(map(differ, wanted, offset.shape))
    require(fits, lambda: f"the offsets {offset} of the data {data} must have the shape {tuple(wanted)}")
    return Related(found.result, {2: found.inputs[1]} if found.inputs else {})


def bilinear(x: Array, y: float, z: float) -> Array:
    """The value of a picture (C, H, W) between elements; what is outside is 0."""
    h, w = x.shape[1:]
    found = np.zeros(x.shape[0])
    top, left = int(np.floor(y)), int(np.floor(z))
    for i, j in tuples((top, top + 1), (left, left + 1)):
        if 0 <= i < h and 0 <= j < w:
            found += x[:, i, j] * (1 - abs(y - i)) * (1 - abs(z - j))
    return found


def _deform(a: Attrs, t: TensorType, x: Array, offset: Array, w: Array) -> Array:
    calls = References()
    x, w, plain = _plainly(calls, a, exact(x), exact(w), 2, "OI")
    offset = layouts.transform(calls, offset, offset.shape, a.data_layout, plain)
    (sy, sx), (top, left, _, _), (ly, lx) = _window_options(a, 2)
    n, (oh, ow), (outs, own, kh, kw) = x.shape[0], offset.shape[2:], w.shape
    moved = np.zeros((n, x.shape[1], kh, kw, oh, ow))
    each = x.shape[1] // a.deformable_groups
    for b, g, i, j, y, z in np.ndindex(n, a.deformable_groups, kh, kw, oh, ow):
        at = g * 2 * kh * kw + 2 * (i * kw + j)
        dy, dx = offset[b, at, y, z], offset[b, at + 1, y, z]
        part = x[b, g * each : (g + 1) * each]
        moved[b, g * each : (g + 1) * each, i, j, y, z] = bilinear(
            part, y * sy - top + i * ly + dy, z * sx - left + j * lx + dx
        )
    made = np.zeros((n, outs, oh, ow))
    for o in range(outs):
        first = o // (outs // a.groups) * own
        made[:, o] = np.einsum("ncklyx,ckl->nyx", moved[:, first : first + own], w[o])
    return layouts.transform(calls, made, made.shape, plain, a.out_layout or a.data_layout)


declare(
    "nn.deformable_conv2d",
    'data, offset, weight, strides=(1, 1), padding=(0, 0), dilation=(1, 1), deformable_groups=1, groups=1, channels=None, kernel_size=None, data_layout="NCHW", kernel_layout="OIHW", out_layout="", out_dtype=""',
    _deformed, ANCHOR, sample((1, 2, 4, 4), (1, 18, 4, 4), (3, 2, 3, 3), padding=[1, 1], low=-1.0, high=1.0),
    record=record("DeformableConv2DAttrs", **dict(list(_fields(2, "OI").items())[:3]), deformable_groups=1, **dict(list(_fields(2, "OI").items())[3:])),
    partial="offset weight", prepare=prepared(2), reference=_deform, level=5,
)  # fmt: skip
