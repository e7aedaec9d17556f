"""Convolutions and pooling: windows over images, lines and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from compass_core.arrays import Array
from compassc.importers.building import Building
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.elementwise import arithmetic, unary
from compassc.importers.onnx.operators.linear import centred
from compassc.importers.onnx.operators.movement import padded
from compassc.importers.onnx.operators.reduce import reduced
from compassc.importers.values import Refused, Value, channels_last, stored_type

if TYPE_CHECKING:
    from compassc.importers.onnx.convert import Conversion

Ints = Sequence[int]


class Window(NamedTuple):
    """A window over spatial axes, outermost first; `pads`: (before, after) by axis."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]

    @property
    def reach(self) -> tuple[int, ...]:
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    def positions(self, sizes: Ints, ceil: bool = False) -> tuple[int, ...]:
        """Positions along each axis. With `ceil` a last one may reach past the end, if it starts inside."""
        found = []
        for size, reach, stride, (before, after) in zip(sizes, self.reach, self.stride, self.pads, strict=True):
            room = size + before + after - reach
            if room < 0:
                raise Refused(f"the window reaches over {reach} elements, the padded image has {size + before + after}")
            many = -(-room // stride) + 1 if ceil else room // stride + 1
            found.append(many - 1 if ceil and (many - 1) * stride >= size + before else many)
        return tuple(found)

    def attributes(self) -> dict[str, int]:
        """The attributes in the form that layers take."""
        letters = "xyz"[: len(self.kernel)]
        given: dict[str, int] = {}
        for name in ("kernel", "stride", "dilation"):
            given |= {f"{name}_{a}": v for a, v in zip(letters, reversed(getattr(self, name)), strict=True)}
        if len(letters) == 3:
            for a, (before, after) in zip(letters, reversed(self.pads), strict=True):
                given |= {f"pad_{a}_begin": before, f"pad_{a}_end": after}
            return given
        (top, bottom), (left, right) = self.pads
        return given | {"pad_left": left, "pad_right": right, "pad_top": top, "pad_bottom": bottom}


def window_of(
    sizes: Ints, kernel: Ints, strides: Ints | None, dilations: Ints | None, pads: Ints | None, auto_pad: str
) -> Window:
    """The window that a node's attributes describe, over an image of `sizes`."""
    rank = len(kernel)
    stride, dilation = tuple(strides or (1,) * rank), tuple(dilations or (1,) * rank)
    if len(sizes) != rank or len(stride) != rank or len(dilation) != rank or min((*kernel, *stride, *dilation)) < 1:
        raise Refused(
            f"kernel {list(kernel)}, strides {list(stride)} and dilations {list(dilation)} are not sizes of "
            f"a window over {len(sizes)} axes"
        )
    if pads is not None and auto_pad in ("NOTSET", "") and len(pads) != 2 * rank:
        raise Refused(f"its pads {list(pads)} are not two for each of {rank} axes")
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        listed = []
        for size, k, s, d in zip(sizes, kernel, stride, dilation, strict=True):
            total = max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size)
            first = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            listed.append((first, total - first))
        return Window(tuple(kernel), stride, dilation, tuple(listed))
    given = list(pads or (0,) * 2 * rank) if auto_pad != "VALID" else [0] * 2 * rank
    return Window(tuple(kernel), stride, dilation, tuple(zip(given[:rank], given[rank:], strict=True)))


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


def without_negative_pads(b: Building, x: Value, window: Window) -> tuple[Value, Window]:
    """The input without the elements that negative pads remove."""
    if all(p >= 0 for pair in window.pads for p in pair):
        return x, window
    cuts = [(max(0, -p), max(0, -q)) for p, q in window.pads]
    axes = range(2, x.rank)
    begin = [c for c, _ in cuts]
    end = [x.shape[a] - c for a, (_, c) in zip(axes, cuts, strict=True)]
    pads = tuple((max(p, 0), max(q, 0)) for p, q in window.pads)
    return b.sliced(x, begin, end, [1] * len(cuts), axes), window._replace(pads=pads)


# -- convolutions


def convolve(b: Building, x: Value, weights: Array, biases: Array | None, window: Window, group: int) -> Value:
    """The layer of a convolution; weights [O, I/group, window...]."""
    rank = x.rank
    image, window = as_image(b, x), widened(window)
    image, window = without_negative_pads(b, image, window)
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
    kernel_shape: Ints | None = None,
    strides: Ints | None = None,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    auto_pad: str = "NOTSET",
    group: int = 1,
) -> Value:
    if kernel_shape is not None and tuple(kernel_shape) != w.shape[2:]:
        raise Refused(f"its kernel_shape is {list(kernel_shape)}, its weights are {list(w.shape)}")
    return convolve(b, x, w, bias, window_of(x.shape[2:], w.shape[2:], strides, dilations, pads, auto_pad), group)


@operator("ConvInteger", since=10)
def conv_integer(
    b: Building,
    x: Value,
    w: Constant,
    x_zero: Value | None = None,
    w_zero: Constant | None = None,
    *,
    kernel_shape: Ints | None = None,
    strides: Ints | None = None,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    auto_pad: str = "NOTSET",
    group: int = 1,
) -> Value:
    window = widened(window_of(x.shape[2:], w.shape[2:], strides, dilations, pads, auto_pad))
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
    kernel_shape: Ints | None = None,
    strides: Ints | None = None,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    auto_pad: str = "NOTSET",
    group: int = 1,
    output_padding: Ints | None = None,
    output_shape: Ints | None = None,
) -> Value:
    sizes, rank = x.shape[2:], x.rank
    extra = tuple(output_padding or (0,) * len(sizes))
    window = window_of(sizes, w.shape[2:], strides, dilations, pads, "NOTSET")
    full = [s * (n - 1) + e + r for s, n, e, r in zip(window.stride, sizes, extra, window.reach, strict=True)]
    if output_shape is not None or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = output_shape or [n * s for n, s in zip(sizes, window.stride, strict=True)]
        window = window._replace(pads=_pads_for(full, wanted[-len(sizes) :], auto_pad))
    if len(sizes) == 1:
        window, extra, full = widened(window), (0, *extra), [1, *full]
    image = as_image(b, x)
    kernel = w.reshape(w.shape[0], w.shape[1], *window.kernel)
    outputs, volume = w.shape[1] * group, len(window.kernel) == 3
    padding = {f"output_padding_{a}": e for a, e in zip("xyz", reversed(extra), strict=False)}
    cut = tuple((max(p, 0), max(q, 0)) for p, q in window.pads)
    shape = (x.shape[0], *(n - p - q for n, (p, q) in zip(full, cut, strict=True)), outputs)
    dtype = np.float32 if w.dtype == np.float64 else w.dtype
    made = b.layer(
        "ConvTranspose3D" if volume else "ConvTranspose",
        [b.image(image)],
        shape,
        stored_type(x.dtype),
        weights=np.ascontiguousarray(kernel.transpose((1, 3, 4, 2, 0) if volume else (1, 2, 3, 0)), dtype),
        biases=np.zeros(outputs, dtype) if bias is None else bias.reshape(-1).astype(dtype),
        num_output=outputs,
        **window._replace(pads=cut).attributes(),
        **padding,
        group=group,
        with_activation="NONE",
    )
    result = b.value(made, x.dtype, channels_last(image.rank))
    more = [(max(-p, 0), max(-q, 0)) for p, q in window.pads]
    if any(p or q for p, q in more):
        listed = [(0, 0), (0, 0), *more]
        result = padded(b, result, [p for p, _ in listed] + [q for _, q in listed], "constant", 0)
    return b.squeeze(result, [2]) if rank == 3 else result


def _pads_for(full: Ints, wanted: Ints, auto_pad: str) -> tuple[tuple[int, int], ...]:
    """Pads that cut a transposed convolution's whole output to the wanted size; negative ones add to it."""
    pads = []
    for size, target in zip(full, wanted, strict=True):
        total = size - target
        first = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
        pads.append((first, total - first))
    return tuple(pads)


@operator("Col2Im", since=18)
def col2im(
    b: Building,
    x: Value,
    image_shape: Constant,
    block_shape: Constant,
    *,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Value:
    """A transposed convolution whose filters hold a single one."""
    sizes, block = [int(v) for v in image_shape], [int(v) for v in block_shape]
    window = widened(window_of(sizes, block, strides, dilations, pads, "NOTSET"))
    if len(sizes) == 1:
        sizes, block = [1, *sizes], [1, *block]
    cells = int(np.prod(block))
    channels, positions = x.shape[1] // cells, window.positions(sizes)
    if int(np.prod(positions)) != x.shape[2]:
        raise Refused(f"{x.shape[2]} columns are not the {list(positions)} places of the block")
    image = b.reshape(x, (x.shape[0], x.shape[1], *positions))
    b.room(channels + 1, cells, cells)
    kernel = np.tile(np.eye(cells, dtype=np.float32).reshape(cells, 1, *block), (channels, *(1,) * (1 + len(block))))
    full = [s * (n - 1) + r for s, n, r in zip(window.stride, positions, window.reach, strict=True)]
    made = conv_transpose(
        b,
        image,
        kernel,
        strides=window.stride,
        dilations=window.dilation,
        group=channels,
        pads=[p for p, _ in window.pads]
        + [f - p - size for f, (p, _), size in zip(full, window.pads, sizes, strict=True)],
    )
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
    given: dict[str, Any] = {"ceil_mode": False}
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
    kernel_shape: Ints,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
) -> Value:
    window = window_of(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad)
    return pool(b, x, "AVG", window, bool(ceil_mode), bool(count_include_pad))


@operator("MaxPool")
def max_pool(
    b: Conversion,
    x: Value,
    *,
    kernel_shape: Ints,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    storage_order: int = 0,
) -> Any:
    window = window_of(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad)
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
    kernel_shape: Ints,
    strides: Ints | None = None,
    pads: Ints | None = None,
) -> Value:
    if x.rank != 4:
        raise Refused("it is supported for images only")
    window = window_of(x.shape[2:], kernel_shape, strides, None, pads, "NOTSET")
    sizes = [
        (n - 1) * s + k - p - q
        for n, s, k, (p, q) in zip(x.shape[2:], window.stride, window.kernel, window.pads, strict=True)
    ]
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
    return padded(b, result, [0, 0, 0, 0, 0, 0, *more], "constant", 0)


@operator("LpPool", since=2)
def lp_pool(
    b: Building,
    x: Value,
    *,
    kernel_shape: Ints,
    p: int = 2,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> Value:
    window = window_of(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad)
    if p in (1, 2) and x.rank < 5:
        return pool(b, x, f"L{p}", window, bool(ceil_mode))
    raised = _power(b, unary(b, x, "Abs"), float(p))
    sums = pool(b, raised, "AVG", window, bool(ceil_mode), include=True)
    area = Value.of(np.full(1, np.prod(kernel_shape), x.dtype))
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
