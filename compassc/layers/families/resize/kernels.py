"""Kernels of images in another size. Where each output element comes from is known when the graph is built."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.arithmetic import Array
from compassc.layers.byte_functions import BYTES
from compassc.layers.families.resize.reference import METHODS, RANKS, between, coordinates, nearest, windows_of
from compassc.layers.families.resize.separable import separable
from compassc.layers.kernels import kernel
from compassc.layers.machine import Share
from compassc.layers.moving import strides_of
from compassc.layers.remapping import remap_kernel
from compassc.layers.source import LANES, Kernel, KernelSource, finish
from compassc.layers.vectors import pointee

STAGED = Share(2)
"""LSRAM for a row: two of the input and one of the output. Always all of it, so that sizes share a kernel."""


@kernel("Resize", "Interp")
def resize(layer: Layer) -> Kernel:
    x, y = layer.input, layer.output
    method = layer.word("method", "BILINEAR", METHODS)
    if method in RANKS:
        return separable(layer)
    if len(x.shape) != 4 or len(y.shape) != 4 or (x.shape[0], x.shape[3]) != (y.shape[0], y.shape[3]):
        raise LayerError(f"{list(x.shape)} to {list(y.shape)} is no change of the size of NHWC images")
    rows = coordinates(layer, "y", x.shape[1], y.shape[1])
    columns = coordinates(layer, "x", x.shape[2], y.shape[2])
    if method in ("NEAREST", "AREA"):
        strides = strides_of(x.shape)
        taken = (
            np.arange(x.shape[0]),
            nearest(layer, rows, x.shape[1], y.shape[1]),
            nearest(layer, columns, x.shape[2], y.shape[2]),
            np.arange(x.shape[3]),
        )
        return remap_kernel(x, y, [i * s for i, s in zip(taken, strides, strict=True)])
    if layer.is_quantised and x.integer.bits > 16:
        raise LayerError(f"{method} of {x.dtype} has no kernel")
    if x.dtype != y.dtype:
        raise LayerError(f"its input is {x.dtype}, its output {y.dtype}; {method} keeps the type")
    return _antialiased(layer) if layer.flag("antialias", False) else _bilinear(layer, rows, columns)


def _share(weights: Array) -> tuple[Array, Array]:
    """(the distinct distances, each element's place among them)."""
    found, place = np.unique(weights, return_inverse=True)
    return found, place.reshape(-1)


def _bilinear(layer: Layer, rows: Array, columns: Array) -> Kernel:
    """Lanes are channels; a pass weighs the four neighbours of one output pixel."""
    k, x, y = KernelSource(), layer.input, layer.output
    source, target = k.tensor(x), k.tensor(y)
    width, c = x.shape[2] * x.shape[3], x.shape[3]
    r0, r1, fy = between(rows, x.shape[1])
    c0, c1, fx = between(columns, x.shape[2])
    above, below = (k.constant((r * width).astype(np.int32)) for r in (r0, r1))
    left, right = (k.constant((p * c).astype(np.int32)) for p in (c0, c1))
    per_row, per_pixel = _weights(k, layer, fy, fx)
    high, wide, channels = k.scalar(y.shape[1]), k.scalar(y.shape[2]), k.scalar(c)
    image, row, line = k.scalar(x.shape[1] * width), k.scalar(width), k.scalar(y.shape[2] * c)
    size = numpy_dtype(x.dtype).itemsize
    staged = max(width, y.shape[2] * c) * size <= STAGED.size
    head, begin, end = _staging(source, target, x, image, row, line) if staged else ([], [], [])
    if not staged:
        begin = [
            f"top = {source} + r / {high} * {image} + {above}[oy]",
            f"bottom = {source} + r / {high} * {image} + {below}[oy]",
            f"out = {target} + r * {line}",
        ]
    begin = [b.format(above=above, below=below, high=high) for b in begin] if staged else begin
    places = [f"{p} + {at} + j" for p in ("top", "bottom") for at in ("at0", "at1")]
    return finish(
        k,
        [
            *head,
            f"for r in range(S.get_local_id(), {k.scalar(y.shape[0] * y.shape[1])}, S.get_local_size()):",
            f"    oy = r % {high}",
            *(f"    {b}" for b in (*begin, *per_row)),
            f"    for ox in range({wide}):",
            f"        at0 = {left}[ox] + 0",
            f"        at1 = {right}[ox] + 0",
            *(f"        {p}" for p in per_pixel),
            f"        for j in range(0, {channels}, {LANES}):",
            f"            mask = S.tail_mask(S.min({channels} - j, {LANES}), {LANES})",
            f"            S.vstore({_weighed(k, layer, places)}, out + ox * {channels} + j, mask)",
            *(f"    {e}" for e in end),
        ],
    )


def _in_bytes(layer: Layer) -> bool:
    return layer.is_quantised and layer.input.dtype in BYTES


def _weighed(k: KernelSource, layer: Layer, places: list[str]) -> str:
    """The expression of the output's lanes, as they are stored, from those at four places."""
    x, y = layer.input, layer.output
    corners = [f'load({p}, mask, "{x.dtype}", {LANES}) * w{i}' for i, p in enumerate(places)]
    if not layer.is_quantised:
        return f'narrow({" + ".join(corners)}, "{y.dtype}")'
    bits, low, high = (
        k.scalar(layer.integer("interp_shift_value", 13)),
        max(y.low, x.integer.low),
        min(y.high, x.integer.high),
    )
    if not _in_bytes(layer):
        limited = f"clamp(requantised({' + '.join(corners)}, 1, {bits}), {k.scalar(low)}, {k.scalar(high)})"
        return f'narrow({limited}, "{y.dtype}")'
    held = ", ".join(f"S.vload({p}, mask, lanes={LANES})" for p in places)
    stored = f'narrowed(sum_of_corners({held}, w0, w1), {bits}, "{y.dtype}")'
    for limit, end, how in ((low, x.integer.low, "max"), (high, x.integer.high, "min")):
        if limit != end:
            stored = f'S.{how}({stored}, S.cast({k.scalar(limit)}, "{y.dtype}"))'
    return stored


def _staging(
    source: str, target: str, x: Tensor, image: str, row: str, line: str
) -> tuple[list[str], list[str], list[str]]:
    """(arrays in LSRAM, copies in before a row, the copy out behind it)."""
    kind = pointee(x.dtype)
    room = STAGED.size // numpy_dtype(x.dtype).itemsize
    head = [f'{name} = S.alloc({room}, "{kind}", scope="lsram")' for name in ("top", "bottom", "out")]
    begin = [
        f"S.dma_copy(top, {source} + r / {{high}} * {image} + {{above}}[oy], {row})",
        f"S.dma_copy(bottom, {source} + r / {{high}} * {image} + {{below}}[oy], {row})",
    ]
    return head, begin, [f"S.dma_copy({target} + r * {line}, out, {line})"]


def _weights(k: KernelSource, layer: Layer, fy: Array, fx: Array) -> tuple[list[str], list[str]]:
    """(statements of a row, statements of a pixel) that make the weights w0 to w3 of the four neighbours."""
    if not layer.is_quantised:
        down, across = (k.constant(f.astype(np.float32)) for f in (fy, fx))
        one = "(1.0 - {})".format
        pairs = [(one("fy"), one("fx")), (one("fy"), "fx"), ("fy", one("fx")), ("fy", "fx")]
        return [f"fy = {down}[oy] + 0.0"], [
            f"fx = {across}[ox] + 0.0",
            *(f"w{i} = {a} * {b}" for i, (a, b) in enumerate(pairs)),
        ]
    bits = layer.integer("interp_shift_value", 13)
    (vy, iy), (vx, ix) = _share(fy), _share(fx)
    vy, vx = vy[:, None], vx[None, :]
    exact = np.stack([(1 - vy) * (1 - vx), (1 - vy) * vx, vy * (1 - vx), vy * vx], -1)
    fixed = np.floor(exact * 2.0**bits + 0.5)
    if np.abs(fixed).max() > 32767 or bits < 0:
        raise LayerError(f"'interp_shift_value' is {bits}, its weights do not fit 16 bits")
    numbers, many = np.ascontiguousarray(fixed.astype(np.int16).reshape(-1)), 4
    if _in_bytes(layer):
        numbers, many = numbers.view(np.int32), 2
    table = k.constant(numbers)
    down, across = k.constant((iy * (many * vx.size)).astype(np.int32)), k.constant((ix * many).astype(np.int32))
    return [f"fy = {down}[oy] + 0"], [
        f"fx = fy + {across}[ox]",
        *(f"w{i} = S.i32({table}[fx + {i}])" for i in range(many)),
    ]


def _antialiased(layer: Layer) -> Kernel:
    """The rows of a window first, as the horizontal pass gives them, then their weighted sum."""
    k, x, y = KernelSource(), layer.input, layer.output
    source, target = k.tensor(x), k.tensor(y)
    first, last, weights, window = {}, {}, {}, {}
    for letter in "xy":
        low, high, found = windows_of(layer, letter)
        first[letter], last[letter] = k.constant(low.astype(np.int32)), k.constant(high.astype(np.int32))
        weights[letter] = k.constant(
            np.ascontiguousarray(found.astype(np.int32 if layer.is_quantised else "f4")).reshape(-1)
        )
        window[letter] = k.scalar(found.shape[1])
    high_, wide, c = k.scalar(y.shape[1]), k.scalar(y.shape[2]), k.scalar(x.shape[3])
    height, width = k.scalar(x.shape[1]), k.scalar(x.shape[2])
    zero = "S.i32(0)" if layer.is_quantised else "S.fp32(0)"
    limit = f"{k.scalar(x.low)}, {k.scalar(x.high)}" if layer.is_quantised else ""
    passed = f"clamp(requantised({{}}, 1, 8), {limit})" if layer.is_quantised else "{}"
    outer = f"clamp(total, {k.scalar(y.low)}, {k.scalar(y.high)})" if layer.is_quantised else "total"
    return finish(
        k,
        [
            f"for r in range(S.get_local_id(), {k.scalar(y.count // y.shape[3])}, S.get_local_size()):",
            f"    ox = r % {wide}",
            f"    oy = r / {wide} % {high_}",
            f"    image = {source} + r / {wide} / {high_} * {height} * {width} * {c}",
            f"    for j in range(0, {c}, {LANES}):",
            f"        mask = S.tail_mask(S.min({c} - j, {LANES}), {LANES})",
            f"        total = S.vbcast({zero}, lanes={LANES})",
            f"        for iy in range({first['y']}[oy], {last['y']}[oy]):",
            f"            part = S.vbcast({zero}, lanes={LANES})",
            f"            for ix in range({first['x']}[ox], {last['x']}[ox]):",
            f'                v = load(image + (iy * {width} + ix) * {c} + j, mask, "{x.dtype}", {LANES})',
            f"                part += v * {weights['x']}[ox * {window['x']} + ix - {first['x']}[ox]]",
            f"            line = {passed.format('part')}",
            f"            total += line * {weights['y']}[oy * {window['y']} + iy - {first['y']}[oy]]",
            f"        total = {passed.format('total')}",
            f'        S.vstore(narrow({outer}, "{y.dtype}"), {target} + r * {c} + j, mask)',
        ],
    )
