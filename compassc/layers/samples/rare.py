"""Samples of layers that are seldom seen: attention as one layer, counts, affine grids, random windows."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.samples.draw import Draw, layer_of, sample


@sample("RotaryEmbedding")
def _rotary(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4 or x.is_integer or x.shape[3] % 2:
        return None
    cache = (x.shape[2], x.shape[3] // 2)
    inputs = [x, draw.plain(cache, x.dtype), draw.plain(cache, x.dtype)]
    return layer_of(draw, kind, inputs, draw.like(x), None, interleaved=draw.choice((True, False)))


@sample("SDPAttention")
def _attention(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4 or x.is_integer:
        return None
    n, heads, _, width = x.shape
    inputs = [x, draw.plain((n, heads, 7, width), x.dtype), draw.plain((n, heads, 7, 5), x.dtype)]
    return layer_of(draw, kind, inputs, draw.like(x, (*x.shape[:3], 5)), None, trans_k=True, scale_factor=0.5)


@sample("InTopK", "ZeroFraction", "Count")
def _counts(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape or (kind == "InTopK" and len(x.shape) != 2):
        return None
    if kind == "InTopK":
        targets = draw.indices((x.shape[0],), x.shape[1])
        return layer_of(draw, kind, [x, targets], draw.plain((x.shape[0],), "uint8"), None, k=2)
    if kind == "ZeroFraction":
        y = draw.plain((x.shape[0],), "uint8" if x.is_integer else x.dtype)
        return layer_of(draw, kind, [x], y, None, **({"output_scale": 255} if x.is_integer else {}))
    if x.is_integer:
        return None
    y = draw.plain((x.shape[0], 4), "int32")
    return layer_of(draw, kind, [x], y, None, nbins=4, min=-1.0, max=1.0, discrete=draw.choice((True, False)))


@sample("AffineGrid")
def _affine(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    theta = x if x.shape[1:] == (2, 3) else draw.plain((2, 2, 3), x.dtype)
    given: dict[str, Value] = {"align_corners": draw.choice((True, False))}
    constants = {}
    if x.is_integer:
        given |= {"multiplier_bits": 8, "scale_value": 200, "shift_value": 15}
        constants = {f"{a}_lut": np.rint(np.linspace(-256, 256, n)).astype("int16") for a, n in (("w", 5), ("h", 3))}
    return layer_of(draw, kind, [theta], draw.requantised(theta, (theta.shape[0], 3, 5, 2)), constants, **given)


@sample("FractionalPool")
def _fractional(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4:
        return None
    n, h, w, c = x.shape
    size = (max(1, h * 2 // 3), max(1, w * 2 // 3))
    outputs = [draw.like(x, (n, *size, c)), *(draw.plain((s + 1,), "int32") for s in size)]
    given = {"method": draw.choice(("AVG", "MAX")), "pseudo": draw.choice((True, False)), "overlap": True, "seed": 5}
    return layer_of(draw, kind, [x], outputs, None, **given)


@sample("Switch")
def _switch(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    return layer_of(draw, kind, [x, draw.other(x)], draw.like(x), None)
