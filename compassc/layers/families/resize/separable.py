"""The kernel of images in another size whose elements are weighed along an axis after the other; the lanes are channels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from compass_core.namedtuple import NamedTuple
from compassc.build import Expression, Pointer, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.element_copies import strides_of
from compassc.layers.families.resize.reference import taps_of
from compassc.layers.kernel import Kernel
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.sliding import Positions
from compassc.layers.vectors import LANES, clamp, wide


class _Neighbour(NamedTuple):
    """How far an element is from the first one along its axis, and its weight."""

    place: Value
    weight: Value


def separable(layer: Layer) -> Kernel:
    """In float32, in the order of the reference."""
    x, y, k = layer.input, layer.output, LayerKernel()
    taps = taps_of(layer)
    if x.dtype != y.dtype or (x.is_integer and x.integer.bits > 16):
        raise LayerError(f"its input is {x.dtype}, its output {y.dtype}; it keeps types of at most 16 bits, and floats")
    near = strides_of(x.shape)
    with k.active():
        w, axes = Positions(k, x, y.shape[1:-1]), list[list[_Neighbour]]()
        with w.spots():
            for at, t, step in zip(w.indices, taps, near[1:-1], strict=True):
                many = t.places.shape[1]
                places, weights = (
                    k.pointer((t.places * step).astype(np.int32).reshape(-1)),
                    k.pointer(t.weights.reshape(-1)),
                )
                first = k.held("first", at * many)
                axes.append(
                    [
                        _Neighbour(k.held("at", places[first + i]), k.held("weight", weights[first + i]))
                        for i in range(many)
                    ]
                )
            image = k.hold(w.source + w.image * k.number(near[0]), "image")
            with w.blocks_of_channels():
                result = w.k.let(_weighed(w, image, axes))
                if y.is_integer:
                    whole = clamp(S.rint(result), k.number(float(y.low)), k.number(float(y.high)))
                    result = k.let(S.cast(whole, "int32"), y.low, y.high)
                w.finish(layer, (), result)
    return k.kernel()


def _weighed(
    w: Positions, image: Pointer, axes: Sequence[Sequence[_Neighbour]], at: Sequence[Value] = ()
) -> Expression:
    """The sum of the neighbours along the first axis times their weights, each of which is such a sum along the others."""
    if not axes:
        stored = S.vload(image + sum(at[1:], at[0]) + w.channel, w.k.mask, lanes=LANES)
        return S.cast(wide(stored, w.x.dtype), "float32")
    parts = (_weighed(w, image, axes[1:], [*at, place]) * weight for place, weight in axes[0])
    return reduce(lambda total, part: w.k.let(total + part), map(w.k.let, parts))
