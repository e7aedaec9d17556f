"""Kernels that put the elements of an axis in order, all of them or the first few.

One element after the other is found: the best of those behind the one before. Only comparisons of whole vectors are
needed, and of equal elements every core finds the same.
"""

from __future__ import annotations

from compassc.graph import Layer, LayerError
from compassc.layers.axes import AxisLoop
from compassc.layers.emit import wide_kind
from compassc.layers.families.reduce.reference import selects_last
from compassc.layers.kernels import kernel
from compassc.layers.source import LANES, Kernel, KernelSource

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
    axis, k, x = layer.axis("axis", -1), KernelSource(), layer.input
    many, kind = _wanted(layer, axis), wide_kind(x)
    falling = layer.flag("largest" if layer.type == "TopK" else "descending", True)
    w = AxisLoop(k, [axis], dict(zip(("x", "y", "index"), (x, *layer.outputs), strict=False)), ("x",))
    top, bottom = ('"inf"', '"-inf"') if kind == "float32" else (str(2**31 - 1), str(-(2**31)))
    first, none, above, below = (top, bottom, ">", "<") if falling else (bottom, top, "<", ">")
    number = k.scalar(w.count)
    w.start("ahead", first, kind)
    w.start("ahead_at", "-1", "int32")
    if w.across:
        k.do(f"own = {w.lanes()}")
    outer, k.body = k.body, []
    w.start("best", none, kind)
    w.start("kept", none, kind)
    w.start("place", number, "int32")
    with w.each() as index:
        k.do(f"v = {w.load('x').name}")
        k.do(f"key = {f'S.vsel({w.filled(top, kind)}, v, v != v)' if kind == 'float32' else 'v + 0'}")
        here = f"own + {index}" if w.across else w.filled(index, "int32")
        # of equal elements the one with the largest index is first: indices count from the end
        k.do(f"here = {f'{number} - 1 - ({here})' if selects_last(layer) else here}")
        k.do(f"left = (key {below} ahead) | ((key == ahead) & (here > ahead_at))")
        k.do(f"better = left & ((key {above} best) | ((key == best) & (here < place)))")
        k.do("better = better & mask")
        k.do("best = S.vsel(key, best, better)")
        k.do("kept = S.vsel(v, kept, better)")
        k.do("place = S.vsel(here, place, better)")
    if w.across:
        k.do("mine = best + 0" if kind == "int32" else "mine = best + 0.0")
        w.join("best", "across_max" if falling else "across_min")
        k.do(f"place = S.vsel(place, {w.filled(number, 'int32')}, mine == best)")
        w.join("place", "across_min")
    k.do("ahead = best")
    k.do("ahead_at = place")
    k.do(f"found = {f'{number} - 1 - place' if selects_last(layer) else 'place + 0'}")
    value = f'narrow(kept, "{x.dtype}")'
    if w.across:
        value = f"S.vbcast({w.pointer('x')}[{w.along('x', 'found[0]')}], lanes={LANES})"
    w.put("y", "r", value)
    if len(layer.outputs) > 1:
        kept = layer.outputs[1].dtype
        w.put("index", "r", "found" if kept == "int32" else f'S.cast(found, "{kept}")')
    body, k.body = k.body, outer
    k.body += [f"for r in range({k.scalar(many)}):", *(f"    {line}" for line in body)]
    return w.kernel()
