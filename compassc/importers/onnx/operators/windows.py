"""Convolutions and pooling: windows over images, lines and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array
from compassc.importers.building import Building
from compassc.importers.onnx.common.shapes import cut_off
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.elementwise import arithmetic, unary
from compassc.importers.onnx.operators.linear import centred
from compassc.importers.onnx.operators.movement import padded
from compassc.importers.onnx.operators.reduce import reduced
from compassc.importers.onnx.window import Asked, Ints, Window
from compassc.importers.values import Refused, Value, channels_last, stored_type

if TYPE_CHECKING:
    from compassc.importers.onnx.convert import Conversion


def as_image(b: Building, x: Value) -> Value:
    """Lines as images of height 1."""
    if x.rank < 3 or x.rank > 5:
        raise Refused(
            f"its input has {x.rank} dimensions, expected 3 to 5: batch, channels and a line, image or volume"
        )
    return b.unsqueeze(x, [2]) if x.rank == 3 else x


def widened(window: Window) -> Window:
    """The window over an image of height 1 instead of a line."""
    if len(window.kernel) > 1:
        return window
    return Window((1, *window.kernel), (1, *window.stride), (1, *window.dilation), ((0, 0), *window.pads))


def finished(b: Building, made: Any, x: Value, rank: int) -> Value:
    """The result with its channels last as the model's tensor of `rank` dimensions."""
    found = b.value(made, x.dtype, channels_last(max(rank, 4)))
    return b.squeeze(found, [2]) if rank == 3 else found


# -- convolutions


def convolve(b: Building, x: Value, weights: Array, biases: Array | None, window: Window, group: int) -> Value:
    """The layer of a convolution; weights [O, I/group, window...]."""
    rank = x.rank
    image, window = as_image(b, x), widened(window)
    image, pairs = cut_off(b, image, [(0, 0), (0, 0), *window.pads])
    window = window._replace(pads=tuple(pairs[2:]))
    w = weights.reshape(weights.shape[0], weights.shape[1], *window.kernel)
    outputs, tensor = w.shape[0], b.image(image)
    if w.shape[1] * group != x.shape[1] or outputs % group:
        raise Refused(f"weights {list(weights.shape)} and {group} groups do not fit {x.shape[1]} channels")
    volume = len(window.kernel) == 3
    depthwise = not volume and outputs == group == x.shape[1] and group > 1
    order = (0, 3, 4, 2, 1) if volume else (0, 2, 3, 1)
    dtype = np.float32 if weights.dtype == np.float64 else weights.dtype
    shape = (x.shape[0], *window.positions(image.shape[2:]), outputs)
    made = b.layer(
        "Convolution3D" if volume else "DepthwiseConv" if depthwise else "Convolution",
        [tensor],
        shape,
        tensor.dtype,
        weights=np.ascontiguousarray(w.transpose(order), dtype),
        biases=(np.zeros(outputs, dtype) if biases is None else biases.reshape(-1).astype(dtype)),
        num_output=outputs,
        **window.attributes(),
        group=group,
        multiplier=1 if depthwise else None,
        with_activation="NONE",
    )
    return finished(b, made, x, rank)


@operator("Conv")
def conv(
    b: Building,
    x: Value,
    w: Constant,
    bias: Constant | None = None,
    *,
    asked: Asked,
    group: int = 1,
) -> Value:
    if asked.kernel_shape is not None and tuple(asked.kernel_shape) != w.shape[2:]:
        raise Refused(f"its kernel_shape is {list(asked.kernel_shape)}, its weights are {list(w.shape)}")
    return convolve(b, x, w, bias, asked.over(x.shape[2:], w.shape[2:]), group)


@operator("ConvInteger", since=10)
def conv_integer(
    b: Building,
    x: Value,
    w: Constant,
    x_zero: Value | None = None,
    w_zero: Constant | None = None,
    *,
    asked: Asked,
    group: int = 1,
) -> Value:
    window = widened(asked.over(x.shape[2:], w.shape[2:]))
    x, of_x = centred(b, x, x_zero)
    zeros = [of_x, 0 if w_zero is None else int(w_zero.reshape(-1)[0])]
    if w_zero is not None and len(set(w_zero.reshape(-1).tolist())) > 1:
        w = w.astype(np.int16) - w_zero.astype(np.int16).reshape(-1, *(1,) * (w.ndim - 1))
        zeros[1] = 0
    image = as_image(b, x)
    if image.rank != 4:
        raise Refused("volumes of whole numbers are not supported")
    tensor = b.image(image)
    kernel = w.reshape(w.shape[0], w.shape[1], *window.kernel).transpose(0, 2, 3, 1)
    shape = (x.shape[0], *window.positions(image.shape[2:]), w.shape[0])
    made = b.layer(
        "ConvInteger",
        [tensor],
        shape,
        "int32",
        weights=np.ascontiguousarray(kernel),
        num_output=w.shape[0],
        **window.attributes(),
        group=group,
        x_zero_point=zeros[0],
        w_zero_point=zeros[1],
    )
    return finished(b, made, x.typed(np.dtype(np.int32)), x.rank)


@operator("ConvTranspose")
def conv_transpose(
    b: Building,
    x: Value,
    w: Constant,
    bias: Constant | None = None,
    *,
    asked: Asked,
    group: int = 1,
    output_padding: Ints | None = None,
    output_shape: Ints | None = None,
) -> Value:
    sizes, rank = x.shape[2:], x.rank
    extra = tuple(output_padding or (0,) * len(sizes))
    window = asked.transposed(sizes, w.shape[2:], extra, output_shape)
    full = window.spread(sizes, extra)
    if len(sizes) == 1:
        window, extra, full = widened(window), (0, *extra), [1, *full]
    image = as_image(b, x)
    kernel = w.reshape(w.shape[0], w.shape[1], *window.kernel)
    outputs, volume = w.shape[1] * group, len(window.kernel) == 3
    padding = {f"output_padding_{a}": e for a, e in zip("xyz", reversed(extra), strict=False)}
    cut = tuple((max(p, 0), max(q, 0)) for p, q in window.pads)
    shape = (x.shape[0], *(n - p - q for n, (p, q) in zip(full, cut, strict=True)), outputs)
    dtype = np.float32 if w.dtype == np.float64 else w.dtype
    more = [(max(-p, 0), max(-q, 0)) for p, q in window.pads]
    enlarged = any(p or q for p, q in more)
    # a border that filters do not reach has the bias, too
    own_bias = None if enlarged else bias
    made = b.layer(
        "ConvTranspose3D" if volume else "ConvTranspose",
        [b.image(image)],
        shape,
        stored_type(x.dtype),
        weights=np.ascontiguousarray(kernel.transpose((1, 3, 4, 2, 0) if volume else (1, 2, 3, 0)), dtype),
        biases=np.zeros(outputs, dtype) if own_bias is None else own_bias.reshape(-1).astype(dtype),
        num_output=outputs,
        **window._replace(pads=cut).attributes(),
        **padding,
        group=group,
        with_activation="NONE",
    )
    result = b.value(made, x.dtype, channels_last(image.rank))
    if enlarged:
        result = padded(b, result, [(0, 0), (0, 0), *more])
        if bias is not None:
            along = Value.of(bias.reshape(1, outputs, *(1,) * (result.rank - 2)).astype(dtype))
            result = arithmetic(b, result, along, "Add")
    return b.squeeze(result, [2]) if rank == 3 else result


@operator("Col2Im", since=18)
def col2im(
    b: Building,
    x: Value,
    image_shape: Constant,
    block_shape: Constant,
    *,
    asked: Asked,
) -> Value:
    """A transposed convolution whose filters hold a single one."""
    sizes, block = [int(v) for v in image_shape], [int(v) for v in block_shape]
    window = widened(asked.over(sizes, block))
    if len(sizes) == 1:
        sizes, block = [1, *sizes], [1, *block]
    cells = int(np.prod(block))
    channels, positions = x.shape[1] // cells, window.positions(sizes)
    if int(np.prod(positions)) != x.shape[2]:
        raise Refused(f"{x.shape[2]} columns are not the {list(positions)} places of the block")
    image = b.reshape(x, (x.shape[0], x.shape[1], *positions))
    b.room(channels + 1, cells, cells)
    kernel = np.tile(np.eye(cells, dtype=np.float32).reshape(cells, 1, *block), (channels, *(1,) * (1 + len(block))))
    full = window.spread(positions, [0] * len(positions))
    ends = [f - p - size for f, (p, _), size in zip(full, window.pads, sizes, strict=True)]
    asked = Asked(None, window.stride, window.dilation, [*(p for p, _ in window.pads), *ends])
    made = conv_transpose(b, image, kernel, asked=asked, group=channels)
    return b.squeeze(made, [2]) if len(image_shape) == 1 else made


# -- pooling


def pool(b: Building, x: Value, method: str, window: Window, ceil: bool = False, include: bool = True) -> Value:
    """A pooling layer. Positions that neither rounding gives are reached by pads."""
    rank = x.rank
    image, window = as_image(b, x), widened(window)
    sizes, many = image.shape[2:], window.positions(image.shape[2:], ceil)
    plain = window._replace(
        pads=tuple(
            (p, (n - 1) * s + r - size - p)
            for n, s, r, size, (p, _) in zip(many, window.stride, window.reach, sizes, window.pads, strict=True)
        )
    )
    beyond = [max(0, q - old) for (_, q), (_, old) in zip(plain.pads, window.pads, strict=True)]
    if any(beyond) and method == "AVG" and include:
        return _mean_inside(b, x, window, plain, many)
    rounded = many == window.positions(sizes, ceil=False)
    if not rounded:
        window = window._replace(pads=tuple((p, max(q, 0)) for p, q in plain.pads))
    given: dict[str, object] = {"ceil_mode": False}
    if method == "AVG":
        given["count_include_pad"] = bool(include)
    tensor = b.image(image)
    kind = "Pooling3D" if len(window.kernel) == 3 else "Pooling"
    made = b.layer(
        kind, [tensor], (x.shape[0], *many, x.shape[1]), tensor.dtype, method=method, **window.attributes(), **given
    )
    return finished(b, made, x, rank)


def _mean_inside(b: Building, x: Value, window: Window, plain: Window, many: Ints) -> Value:
    """Means that count padding but not positions beyond it: window sums divided by the number of counted cells."""
    cells = np.ones(b.room(*many))
    image = as_image(b, x)
    for i, (n, s, k, d, size, (p, q)) in enumerate(
        zip(many, window.stride, window.kernel, window.dilation, image.shape[2:], window.pads, strict=True)
    ):
        b.room(n, k)
        at = np.arange(n)[:, None] * s + np.arange(k)[None, :] * d
        inside = (at < size + p + q).sum(1)
        shape = [1] * len(many)
        shape[i] = n
        cells = cells * inside.reshape(shape)
    ahead = plain._replace(pads=tuple((p, max(q, 0)) for p, q in plain.pads))
    sums = pool(b, image, "AVG", ahead, include=True)
    factor = (np.prod(window.kernel) / cells).astype(np.float32).reshape(1, 1, *many)
    result = arithmetic(b, sums, Value.of(factor.astype(x.dtype)), "Mul")
    return b.squeeze(result, [2]) if x.rank == 3 else result


@operator("AveragePool")
def average_pool(
    b: Building,
    x: Value,
    *,
    asked: Asked,
    ceil_mode: int = 0,
    count_include_pad: int = 0,
) -> Value:
    window = asked.mean(x.shape[2:])
    return pool(b, x, "AVG", window, bool(ceil_mode), bool(count_include_pad))


@operator("MaxPool")
def max_pool(
    b: Conversion,
    x: Value,
    *,
    asked: Asked,
    ceil_mode: int = 0,
    storage_order: int = 0,
) -> Any:
    window = asked.over(x.shape[2:])
    if not b.uses(1):
        return pool(b, x, "MAX", window, bool(ceil_mode))
    if x.rank != 4:
        raise Refused("indices of maxima are supported for images only")
    tensor, many = b.image(x), window.positions(x.shape[2:], bool(ceil_mode))
    shape = (x.shape[0], *many, x.shape[1])
    made = b.layers_of(
        "MaxPoolingWithArgMax",
        [tensor],
        [(shape, tensor.dtype), (shape, "int32")],
        **window.attributes(),
        flatten_dim="NCHW",
        storage_order=storage_order,
        ceil_mode=bool(ceil_mode),
    )
    return [b.value(made[0], x.dtype, channels_last(4)), b.value(made[1], np.int64, channels_last(4))]


@operator("MaxUnpool", since=9)
def max_unpool(
    b: Building,
    x: Value,
    index: Value,
    output_shape: Constant | None = None,
    *,
    asked: Asked,
) -> Value:
    if x.rank != 4:
        raise Refused("it is supported for images only")
    window = asked.over(x.shape[2:])
    full = window.spread(x.shape[2:], [0, 0])
    sizes = [n - p - q for n, (p, q) in zip(full, window.pads, strict=True)]
    indexed = sizes
    if output_shape is not None:
        sizes = [int(d) for d in output_shape][2:]
    shape = (x.shape[0], *indexed, x.shape[1])
    made = b.layer(
        "MaxUnpool",
        [b.image(x), b.image(index)],
        shape,
        stored_type(x.dtype),
        flatten_dim="NCHW",
        output_shape=list(shape),
        storage_order=0,
    )
    result = b.value(made, x.dtype, channels_last(4))
    if sizes == list(indexed):
        return result
    more = [wanted - size for wanted, size in zip(sizes, indexed, strict=True)]
    if min(more) < 0:
        raise Refused("its output_shape is smaller than what its window leads to")
    return padded(b, result, [(0, 0), (0, 0), *((0, m) for m in more)])


@operator("LpPool", since=2)
def lp_pool(
    b: Building,
    x: Value,
    *,
    asked: Asked,
    p: int = 2,
    ceil_mode: int = 0,
) -> Value:
    window = asked.mean(x.shape[2:])
    if p in (1, 2) and x.rank < 5:
        return pool(b, x, f"L{p}", window, bool(ceil_mode))
    raised = _power(b, unary(b, x, "Abs"), float(p))
    # a mean counts no cells behind its pads, and every cell counts for the area
    filled = window.filled(x.shape[2:]) if ceil_mode else window
    sums = pool(b, raised, "AVG", filled, include=True)
    area = Value.of(np.full(1, np.prod(window.kernel), x.dtype))
    return _power(b, arithmetic(b, sums, area, "Mul"), 1 / p)


def _power(b: Building, x: Value, exponent: float) -> Value:
    if exponent == 1:
        return x
    if exponent == 2:
        return unary(b, x, "Square")
    if exponent == 0.5:
        return unary(b, x, "Sqrt")
    return unary(b, x, "Pow", exponent=exponent)


@operator("GlobalAveragePool", "GlobalMaxPool")
def global_pool(b: Conversion, x: Value) -> Value:
    average = b.op == "GlobalAveragePool"
    if x.rank in (3, 4):
        ones, none = (1,) * (x.rank - 2), ((0, 0),) * (x.rank - 2)
        return pool(b, x, "AVG" if average else "MAX", Window(x.shape[2:], ones, ones, none), include=False)
    return reduced(b, x, "MEAN" if average else "MAX", range(2, x.rank))


@operator("GlobalLpPool", since=2)
def global_lp_pool(b: Building, x: Value, *, p: int = 2) -> Value:
    axes = range(2, x.rank)
    if p in (1, 2):
        return reduced(b, x, f"L{p}", axes)
    return _power(b, reduced(b, _power(b, unary(b, x, "Abs"), float(p)), "SUM", axes), 1 / p)
