"""The kernel of images in another size whose elements are weighed along an axis after the other; the lanes are channels."""

from __future__ import annotations

from itertools import product

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.emit import wide_kind
from compassc.layers.families.resize.reference import taps_of
from compassc.layers.moving import strides_of
from compassc.layers.source import LANES, Kernel, KernelSource, finish


def separable(layer: Layer) -> Kernel:
    """In float32, in the order of the reference."""
    x, y, k = layer.input, layer.output, KernelSource()
    taps = taps_of(layer)
    wide_kind(x)
    if x.dtype != y.dtype or (x.is_integer and x.integer.bits > 16):
        raise LayerError(f"its input is {x.dtype}, its output {y.dtype}; it keeps types of at most 16 bits, and floats")
    near, axes = strides_of(x.shape), "zyx"[-len(taps) :]
    places = [k.constant((t.places * s).astype(np.int32).reshape(-1)) for t, s in zip(taps, near[1:-1], strict=True)]
    weights = [k.constant(np.ascontiguousarray(t.weights).reshape(-1)) for t in taps]
    many = taps[0].places.shape[1]
    source, c, rest, indices = k.tensor(x), k.scalar(x.shape[-1]), "r", list[str]()
    for a, n in zip(reversed(axes), reversed(y.shape[1:-1]), strict=True):
        size = k.scalar(n)
        indices.append(f"o{a} = {rest} % {size} * {many}")
        rest = f"({rest} / {size})"
    for a, place, weight in zip(axes, places, weights, strict=True):
        for i in range(many):
            indices += [f"{a}{i} = {place}[o{a} + {i}] + 0", f"w{a}{i} = {weight}[o{a} + {i}] + 0.0"]
    body: list[str] = []
    for outer in product(range(many), repeat=len(taps) - 1):
        at = " + ".join([f"{a}{i}" for a, i in zip(axes, outer, strict=False)])
        for i in range(many):
            load = f'load(image + ({at + " + " if at else ""}x{i}) + j, mask, "{x.dtype}", {LANES})'
            real = load if wide_kind(x) == "float32" else f'S.cast({load}, "float32")'
            body.append(f"part = {real} * wx{i}")
            body.append(f"s{len(taps) - 1} = {'part + 0.0' if i == 0 else f's{len(taps) - 1} + part'}")
        # sums of an axis are done when its last neighbour is
        for depth in reversed(range(len(taps) - 1)):
            i, a = outer[depth], axes[depth]
            body.append(f"part = s{depth + 1} * w{a}{i}")
            body.append(f"s{depth} = {'part + 0.0' if i == 0 else f's{depth} + part'}")
            if i < many - 1:
                break
    result = "s0"
    if y.is_integer:
        body.append(f"whole = clamp(S.rint(s0), {k.scalar(float(y.low))}, {k.scalar(float(y.high))})")
        result = 'S.cast(whole, "int32")'
    return finish(
        k,
        [
            f"for r in range(S.get_local_id(), {k.scalar(y.count // max(y.shape[-1], 1))}, S.get_local_size()):",
            *(f"    {i}" for i in indices),
            f"    image = {source} + {rest} * {k.scalar(near[0])}",
            f"    for j in range(0, {c}, {LANES}):",
            f"        mask = S.tail_mask(S.min({c} - j, {LANES}), {LANES})",
            *(f"        {b}" for b in body),
            f'        S.vstore(narrow({result}, "{y.dtype}"), {k.tensor(y)} + r * {c} + j, mask)',
        ],
    )
