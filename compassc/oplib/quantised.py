"""Linear layers on int8: int32 sums, then y = clip(round(sum * scale / 2^shift) - zero point).

The factor scale / 2^shift and its product with the sum are float32, rounding is half to even. The input's zero point
is folded into the biases, as the IR has it; outside the image the input counts as 0.
"""

from functools import cache

from compassc.dsl import script as S
from compassc.oplib.activations import values
from compassc.oplib.layer import Choice, Layer, Unsupported, constant, count, one_of
from compassc.oplib.window import Window

LANES = 32
CHANNELS = 4096
"""Most output channels of a layer: their sums lie in LSRAM."""


@S.prim_func
def dot(a: S.ptr("int8", "global"), b: S.ptr("int8", "global"), depth: S.i32) -> S.i32:
    """The sum of products of two int8 rows."""
    acc = S.i32x8(0)
    full = depth / LANES * LANES
    for k in range(0, full, LANES):
        acc = S.vqdpa(acc, S.vload(a + k), S.vload(b + k))
    rest = depth - full
    if rest > 0:
        mask = S.tail_mask(rest, LANES)
        acc = S.vqdpa(acc, S.vload(a + full, mask), S.vload(b + full, mask), mask)
    return S.vrpadd(acc)[0]


def _requantised(total, factor, zero, low, high):
    """The int8 result of int32 sums."""
    real = S.rint(S.cast(total, "float32") * factor) - S.fp32(zero)
    return S.cast(S.cast(S.min(S.max(real, S.fp32(low)), S.fp32(high)), "int32"), "int8")


@cache
def _grouped():
    """Weights are [output channel][ky][kx][input channel of the group]."""

    @S.prim_func
    def conv(
        x: S.ptr("int8", "global"), weights: S.ptr("int8", "global"), bias: S.ptr("int32", "global"),
        factor: S.ptr("float32", "global"), y: S.ptr("int8", "global"), n: S.i32, h: S.i32, w: S.i32, c: S.i32,
        oh: S.i32, ow: S.i32, kh: S.i32, kw: S.i32, sy: S.i32, sx: S.i32, dy: S.i32, dx: S.i32, pt: S.i32, pl: S.i32,
        groups: S.i32, outputs: S.i32, zero: S.i32, low: S.i32, high: S.i32,
    ):  # fmt: skip
        sums = S.alloc(CHANNELS, "int32", scope="lsram")
        ig = c / groups
        og = outputs / groups
        for at in range(S.get_local_id(), n * oh * ow, S.get_local_size()):
            ox = at % ow
            oy = at / ow % oh
            image = at / (ow * oh)
            for o in range(outputs):
                acc = bias[o]
                for k in range(kh * kw):
                    iy = oy * sy + k / kw * dy - pt
                    ix = ox * sx + k % kw * dx - pl
                    if iy >= 0 and iy < h and ix >= 0 and ix < w:
                        pixel = x + (((image * h + iy) * w + ix) * c + o / og * ig)
                        acc = acc + dot(pixel, weights + (o * kh * kw + k) * ig, ig)
                sums[o] = acc
            for t in range(0, outputs, LANES):
                mask = S.tail_mask(S.min(outputs - t, LANES), LANES)
                v = S.vload(sums + t, lanes=LANES)
                r = _requantised(v, S.vload(factor + t, mask, lanes=LANES), zero, low, high)
                S.vstore(r, y + (at * outputs + t), mask)

    return conv


@cache
def _depthwise():
    """One output channel per input channel; weights are [ky][kx][channel]."""

    @S.prim_func
    def conv(
        x: S.ptr("int8", "global"), weights: S.ptr("int8", "global"), bias: S.ptr("int32", "global"),
        factor: S.ptr("float32", "global"), y: S.ptr("int8", "global"), n: S.i32, h: S.i32, w: S.i32, c: S.i32,
        oh: S.i32, ow: S.i32, kh: S.i32, kw: S.i32, sy: S.i32, sx: S.i32, dy: S.i32, dx: S.i32, pt: S.i32, pl: S.i32,
        zero: S.i32, low: S.i32, high: S.i32,
    ):  # fmt: skip
        for at in range(S.get_local_id(), n * oh * ow, S.get_local_size()):
            ox = at % ow
            oy = at / ow % oh
            image = at / (ow * oh)
            for o in range(0, c, LANES):
                mask = S.tail_mask(S.min(c - o, LANES), LANES)
                acc = S.vload(bias + o, mask, lanes=LANES)
                for k in range(kh * kw):
                    iy = oy * sy + k / kw * dy - pt
                    ix = ox * sx + k % kw * dx - pl
                    if iy >= 0 and iy < h and ix >= 0 and ix < w:
                        pixels = S.cast(S.vload(x + (((image * h + iy) * w + ix) * c + o), mask), "int32")
                        acc = acc + pixels * S.cast(S.vload(weights + (k * c + o), mask), "int32")
                r = _requantised(acc, S.vload(factor + o, mask, lanes=LANES), zero, low, high)
                S.vstore(r, y + (at * c + o), mask)

    return conv


def _factors(layer: Layer, outputs: int):
    """scale / 2^shift of every output channel."""
    import numpy as np

    def each(name: str, default: float):
        if name in layer.constants:
            return layer.constant(name).reshape(-1).astype("float64")
        return np.array([layer.number(f"{name}_value", default)], "float64")

    factors = each("scale", 1.0) / 2.0 ** each("shift", 0.0)
    if factors.size not in (1, outputs):
        raise Unsupported(f"{factors.size} scales for {outputs} output channels")
    return constant("factors", np.broadcast_to(factors, (outputs,)).astype("float32"))


def _range(layer: Layer) -> list[int]:
    """The zero point, and the least and the greatest result: what the fused activation leaves of int8."""
    act = one_of("with_activation", layer.word("with_activation", "NONE"), ("NONE", "RELU", "RELU6", "CLIP"))
    scale, zero = layer.output.scale, layer.output.zero_point
    real = {"RELU": (0.0, None), "RELU6": (0.0, 6.0), "NONE": (None, None)}.get(act) or values(layer, act)
    low, high = (None if v is None else round(v * scale) - zero for v in real)
    return [zero, max(-128, low if low is not None else -128), min(127, high if high is not None else 127)]


def _operands(layer: Layer, outputs: int):
    """The biases and factors of the output channels."""
    import numpy as np

    if outputs > CHANNELS:
        raise Unsupported(f"{outputs} output channels; at most {CHANNELS} fit LSRAM")
    biases = layer.constant("biases") if "biases" in layer.constants else np.zeros(outputs)
    if biases.size != outputs:
        raise Unsupported(f"{biases.size} biases for {outputs} output channels")
    return constant("biases", biases.reshape(-1).astype("int32")), _factors(layer, outputs)


def convolution(layer: Layer, groups: int, at: Window) -> Choice:
    """Convolution and DepthwiseConv on int8."""
    layer.dtype("int8")
    weights = layer.constant("weights")
    outputs, inner = weights.shape[0], at.c // groups
    expected = (layer.output.shape[3], at.kh, at.kw, inner)
    if weights.shape != expected or weights.dtype != "int8" or outputs % groups:
        raise Unsupported(f"{weights.dtype} weights of the shape {list(weights.shape)}, expected int8 {list(expected)}")
    operands = [*_operands(layer, outputs), layer.output]
    if groups == at.c == outputs:
        ordered = constant("weights", weights.reshape(at.c, at.kh, at.kw).transpose(1, 2, 0))
        return Choice(_depthwise(), "depthwise_i8", [layer.input(), ordered, *operands, *at, *_range(layer)])
    args = [layer.input(), constant("weights", weights), *operands, *at, groups, outputs, *_range(layer)]
    return Choice(_grouped(), "conv_i8", args)


def fully_connected(layer: Layer) -> Choice:
    """FullyConnected on int8: a 1x1 convolution of images of one pixel."""
    layer.dtype("int8")
    weights = layer.constant("weights")
    outputs, depth = weights.shape[0], weights.size // weights.shape[0]
    rows = count(layer.input().shape) // depth
    if rows * depth != count(layer.input().shape) or rows * outputs != count(layer.output.shape):
        raise Unsupported(f"weights of the shape {list(weights.shape)} do not fit the tensors")
    at = Window(rows, 1, 1, depth, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0)
    operands = [constant("weights", weights), *_operands(layer, outputs), layer.output]
    return Choice(_grouped(), "conv_i8", [layer.input(), *operands, *at, 1, outputs, *_range(layer)])
