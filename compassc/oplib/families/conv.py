"""Convolution and DepthwiseConv, direct. Floats are summed in float32; weights are put in the order the kernel reads."""

from functools import cache

from compassc.dsl import script as S
from compassc.oplib.activations import TABLE, fused
from compassc.oplib.layer import FLOATS, Choice, Layer, Unsupported, constant, operator
from compassc.oplib.vector import LANES, SHORT, narrow, wide
from compassc.oplib.window import Window, window

WIDE = 32
"""Output channels worked on at once."""


@cache
def _grouped(act: str, dtype: str):
    """Weights are [group][ky][kx][input channel of the group][output channel of the group]."""
    activation = TABLE[act].apply

    @S.prim_func
    def conv(
        x: S.ptr(dtype, "global"), weights: S.ptr("float32", "global"), bias: S.ptr("float32", "global"),
        y: S.ptr(dtype, "global"), n: S.i32, h: S.i32, w: S.i32, c: S.i32, oh: S.i32, ow: S.i32, kh: S.i32, kw: S.i32,
        sy: S.i32, sx: S.i32, dy: S.i32, dx: S.i32, pt: S.i32, pl: S.i32, groups: S.i32, og: S.i32,
        p: S.fp32, q: S.fp32,
    ):  # fmt: skip
        ig = c / groups
        for at in range(S.get_local_id(), n * oh * ow, S.get_local_size()):
            ox = at % ow
            oy = at / ow % oh
            image = at / (ow * oh)
            for go in range(groups * S.ceildiv(og, WIDE)):
                g = go % groups
                o = go / groups * WIDE
                mask = S.tail_mask(S.min(og - o, WIDE), WIDE)
                acc = S.vload(bias + (g * og + o), mask, lanes=WIDE)
                for k in range(kh * kw):
                    iy = oy * sy + k / kw * dy - pt
                    ix = ox * sx + k % kw * dx - pl
                    if iy >= 0 and iy < h and ix >= 0 and ix < w:
                        pixel = x + (((image * h + iy) * w + ix) * c + g * ig)
                        column = weights + ((g * kh * kw + k) * ig * og + o)
                        for i in range(ig):
                            acc = acc + S.vload(column + i * og, mask, lanes=WIDE) * S.fp32(pixel[i])
                S.vstore(narrow(activation(acc, p, q), dtype), y + ((at * groups + g) * og + o), mask)

    return conv


@cache
def _depthwise(act: str, dtype: str):
    """One output channel per input channel; weights are [ky][kx][channel], the lanes are channels."""
    lanes, activation = LANES[dtype], TABLE[act].apply

    @S.prim_func
    def conv(
        x: S.ptr(dtype, "global"), weights: S.ptr("float32", "global"), bias: S.ptr("float32", "global"),
        y: S.ptr(dtype, "global"), n: S.i32, h: S.i32, w: S.i32, c: S.i32, oh: S.i32, ow: S.i32, kh: S.i32, kw: S.i32,
        sy: S.i32, sx: S.i32, dy: S.i32, dx: S.i32, pt: S.i32, pl: S.i32, p: S.fp32, q: S.fp32,
    ):  # fmt: skip
        for at in range(S.get_local_id(), n * oh * ow, S.get_local_size()):
            ox = at % ow
            oy = at / ow % oh
            image = at / (ow * oh)
            for o in range(0, c, lanes):
                mask = S.tail_mask(S.min(c - o, lanes), lanes)
                acc = S.vload(bias + o, mask, lanes=lanes)
                for k in range(kh * kw):
                    iy = oy * sy + k / kw * dy - pt
                    ix = ox * sx + k % kw * dx - pl
                    if iy >= 0 and iy < h and ix >= 0 and ix < w:
                        v = wide(S.vload(x + (((image * h + iy) * w + ix) * c + o), mask), dtype)
                        acc = acc + v * S.vload(weights + (k * c + o), mask, lanes=lanes)
                S.vstore(narrow(activation(acc, p, q), dtype), y + (at * c + o), mask)

    return conv


def _biases(layer: Layer, outputs: int):
    import numpy as np

    array = layer.constant("biases") if "biases" in layer.constants else np.zeros(outputs)
    if array.size != outputs:
        raise Unsupported(f"{array.size} biases for {outputs} output channels")
    return constant("biases", array.astype("float32").reshape(-1))


def _float(layer: Layer, groups: int, at: Window) -> Choice:
    dtype = layer.dtype(*FLOATS)
    act, p, q = fused(layer)
    weights = layer.constant("weights").astype("float32")
    outputs, inner = weights.shape[0], at.c // groups
    if weights.shape[1:] != (at.kh, at.kw, inner) or outputs % groups or outputs != layer.output.shape[3]:
        raise Unsupported(f"weights of the shape {list(weights.shape)}, expected [{layer.output.shape[3]}, {at.kh}, "
                          f"{at.kw}, {inner}]")  # fmt: skip
    ends = _biases(layer, outputs), layer.output
    own = outputs // groups
    if groups == at.c and own == 1:
        ordered = constant("weights", weights.reshape(at.c, at.kh, at.kw).transpose(1, 2, 0))
        args = [layer.input(), ordered, *ends, *at, p, q]
        return Choice(_depthwise(act, dtype), f"depthwise_{act}_{SHORT[dtype]}".lower(), args)
    ordered = constant("weights", weights.reshape(groups, own, at.kh, at.kw, inner).transpose(0, 2, 3, 4, 1))
    args = [layer.input(), ordered, *ends, *at, groups, own, p, q]
    return Choice(_grouped(act, dtype), f"conv_{act}_{SHORT[dtype]}".lower(), args)


@operator("Convolution", "DepthwiseConv")
def select(layer: Layer) -> Choice:
    at = window(layer)
    groups = layer.whole("group", at.c if layer.type == "DepthwiseConv" else 1)
    if groups < 1 or at.c % groups:
        raise Unsupported(f"{at.c} channels in {groups} groups")
    return _float(layer, groups, at)
