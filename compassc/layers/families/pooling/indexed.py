"""Kernels of the maximum with its place."""

from __future__ import annotations

import numpy as np

from compassc.build import Expression
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.families.movement.scatter import unpooling
from compassc.layers.families.pooling.reference import FLATTENED, check_positions
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.sliding import Windows, axes_of
from compassc.layers.vectors import LANES, everywhere, wide_kind
from compassc.layers.windows import window_of

kernel("MaxUnpool", "UpsampleByIndex")(unpooling)


@kernel("MaxPoolingWithArgMax")
def max_pooling_with_index(layer: Layer) -> Kernel:
    """Lanes are channels: each keeps its largest cell and that cell's number in the image."""
    x, k = layer.input, LayerKernel()
    if len(x.shape) != 4 or len(layer.outputs) != 2:
        raise LayerError(
            f"the input is {list(x.shape)} and there are {len(layer.outputs)} outputs, expected NHWC and 2"
        )
    window, (y, index) = window_of(layer), layer.outputs
    check_positions(layer, window, x.shape)
    if y.shape != index.shape or x.dtype != y.dtype or index.dtype != "int32":
        raise LayerError(
            f"its outputs are {y.dtype} {list(y.shape)} and {index.dtype} {list(index.shape)}, expected {x.dtype} and "
            "int32 of one shape"
        )
    by_columns, kind = layer.integer("storage_order", 0), wide_kind(x)
    with k.active():
        w = Windows(k, x, axes_of(k, window, layer))
        with w.positions():
            best, place = k.changing("best", everywhere(0, kind)), k.changing("best_at", everywhere(-1))
            for cell in w.cells():
                v, (row, column) = w.widened(cell), w.inner
                better = (v > best) | (place < 0)
                if kind == "float32":
                    better = better | ((v != v) & (best == best))  # noqa: PLR0124 (NaN is not)
                better = k.let(better)
                here = column * w.sizes[0] + row if by_columns else row * w.sizes[1] + column
                k.assign(place, S.vsel(here, place, better))
                k.assign(best, S.vsel(v, best, better))
            to = k.held("place", w.place)
            S.vstore(k.stored(best, y.dtype), k.tensor(y) + to, k.mask)
            S.vstore(S.vsel(_number(layer, w, place), 0, place >= 0), k.tensor(index) + to, k.mask)
    return k.kernel()


def _number(layer: Layer, w: Windows, place: Expression) -> Expression:
    """The number of an element of its image, as the layer counts."""
    form, (h, wide) = layer.word("flatten_dim", "HWC", FLATTENED), w.sizes
    lane = S.vload(w.k.pointer(np.arange(LANES, dtype=np.int32)), lanes=LANES) + w.channel
    if form == "HWC":
        return place * w.channels + lane
    if form == "NHWC":
        return (w.image * h * wide + place) * w.channels + lane
    return (w.image * w.channels + lane) * (h * wide) + place if form == "NCHW" else place
