"""Kernels that put the elements of an axis in order, all of them or the first few.

One element after the other is found: the best of those behind the one before. Only comparisons of whole vectors are
needed, and of equal elements every core finds the same.
"""

from __future__ import annotations

from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.axes import AxisLoop
from compassc.layers.families.reduce.reference import selects_last
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.lane_arithmetic import across_max, across_min
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.vectors import LANES, wide_kind

INDEX_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


def _wanted(layer: Layer, axis: int) -> int:
    """The number of elements to select. LayerError where shapes or types of the outputs do not follow."""
    x, n = layer.input, layer.input.shape[axis]
    many = layer.output.shape[axis] if len(layer.output.shape) == len(x.shape) else -1
    for t in layer.outputs:
        if t.shape != (*x.shape[:axis], many, *x.shape[axis + 1 :]) or not 0 <= many <= n:
            raise LayerError(
                f"'{t.name}' is declared as {list(t.shape)}, which the input {list(x.shape)} does not give"
            )
    given = n if layer.type == "Sort" else None if len(layer.inputs) > 1 else min(layer.integer("k", 1), n)
    if given not in (None, many):
        key = "k" if layer.type == "TopK" else "axis"
        raise LayerError(
            f"'{key}' is {layer.attributes.get(key)}, which wants {given} elements; the outputs have {many}"
        )
    if layer.output.dtype != x.dtype:
        raise LayerError(f"its input is {x.dtype}, its output {layer.output.dtype}; it keeps the type")
    if len(layer.outputs) > 1:
        kind = layer.outputs[1].dtype
        if kind not in INDEX_TYPES or n - 1 > layer.outputs[1].integer.high:
            raise LayerError(f"'{layer.outputs[1].name}' is {kind}, which does not hold indices up to {n - 1}")
    return many


@kernel("TopK", "Sort")
def ordered(layer: Layer) -> Kernel:
    axis, k, x = layer.axis("axis", -1), LayerKernel(), layer.input
    many = _wanted(layer, axis)
    with k.active():
        w = AxisLoop(k, [axis], dict(zip(("x", "y", "index"), (x, *layer.outputs), strict=False)), ("x",))
        with w.positions():
            _ranked(k, layer, w, many)
    return k.kernel()


def _ranked(k: LayerKernel, layer: Layer, w: AxisLoop, many: int) -> None:
    """Finds the elements of a position one after the other."""
    kind, backwards = wide_kind(layer.input), selects_last(layer)
    falling = layer.flag("largest" if layer.type == "TopK" else "descending", True)
    top, bottom = ("inf", "-inf") if kind == "float32" else (2**31 - 1, -(2**31))
    first, none = (top, bottom) if falling else (bottom, top)
    number = k.number(w.count)
    ahead, ahead_at = w.start("ahead", first, kind), w.start("ahead_at", -1, "int32")
    own = k.held("own", w.lanes()) if w.across else None
    with k.for_range(0, k.number(many), name="r") as r:
        best, kept = w.start("best", none, kind), w.start("kept", none, kind)
        place = w.start("place", number, "int32")
        with w.each() as index:
            v = w.load("x")
            # NaN is larger than all numbers
            key = k.held("key", S.vsel(w.filled(top, kind), v, v != v) if kind == "float32" else v + 0)  # noqa: PLR0124
            here = k.held("here", w.filled(index, "int32") if own is None else own + index)
            # of equal elements the one with the largest index is first: indices count from the end
            here = k.held("here", number - 1 - here) if backwards else here
            left = ((key < ahead) if falling else (key > ahead)) | ((key == ahead) & (here > ahead_at))
            better = ((key > best) if falling else (key < best)) | ((key == best) & (here < place))
            taken = k.held("better", k.held("left", left) & better & k.mask)
            k.assign(best, S.vsel(key, best, taken))
            k.assign(kept, S.vsel(v, kept, taken))
            k.assign(place, S.vsel(here, place, taken))
        if w.across:
            mine = k.held("mine", best + (0 if kind == "int32" else 0.0))
            w.join(best, across_max if falling else across_min)
            k.assign(place, S.vsel(place, w.filled(number, "int32"), mine == best))
            w.join(place, across_min)
        k.assign(ahead, best)
        k.assign(ahead_at, place)
        found = k.held("found", number - 1 - place if backwards else place + 0)
        if w.across:
            w.put("y", r, S.vbcast(w.pointer("x")[w.along("x", found[0])], lanes=LANES))
        else:
            w.put("y", r, k.stored(kept, layer.input.dtype))
        if len(layer.outputs) > 1:
            index_type = layer.outputs[1].dtype
            w.put("index", r, found if index_type == "int32" else S.cast(found, index_type))
