"""Layers whose output is the input at other places: Slice, Crop, Pad, Tile and Resize to the nearest neighbour.

Where each element comes from is known when the graph is built. It becomes up to three tables, one per dimension that
is not left as it is, with the place of each index in the input, and one run of neighbours that is copied as a whole.
"""

import struct
from functools import cache
from typing import NamedTuple

import numpy as np

from compassc.dsl import script as S
from compassc.oplib.families.movement import bits
from compassc.oplib.layer import Choice, Layer, Unsupported, constant, count, operator
from compassc.oplib.vector import LANES, SHORT

TABLES = 3
MOST = 1 << 20
"""Longest table made by joining two."""


@cache
def _kernel(dtype: str):
    """Row (i, j, k) of y: elements [low, high) come from x at ta[i] + tb[j] + tc[k] + begin, all others are `fill`;
    so is the whole row when a table says -1."""
    lanes = LANES[dtype]

    @S.prim_func
    def constants(y: S.ptr(dtype, "global"), n: S.i32, fill: S.i32):
        for at in range(0, n, lanes):
            S.vstore(S.cast(S.vbcast(fill, lanes=lanes), dtype), y + at, S.tail_mask(S.min(n - at, lanes), lanes))

    @S.prim_func
    def remap(
        x: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"), ta: S.ptr("int32", "global"),
        tb: S.ptr("int32", "global"), tc: S.ptr("int32", "global"), na: S.i32, nb: S.i32, nc: S.i32, width: S.i32,
        low: S.i32, high: S.i32, begin: S.i32, fill: S.i32,
    ):  # fmt: skip
        for r in range(S.get_local_id(), na * nb * nc, S.get_local_size()):
            a = ta[r / (nb * nc)]
            b = tb[r / nc % nb]
            c = tc[r % nc]
            row = y + r * width
            if a < 0 or b < 0 or c < 0:
                constants(row, width, fill)
            else:
                source = x + (a + b + c + begin)
                constants(row, low, fill)
                constants(row + high, width - high, fill)
                for at in range(low, high, lanes):
                    mask = S.tail_mask(S.min(high - at, lanes), lanes)
                    S.vstore(S.vload(source + (at - low), mask), row + at, mask)

    return remap


class Run(NamedTuple):
    """The innermost part of the output: `width` elements, of which [low, high) come from `begin` on."""

    width: int
    low: int
    high: int
    begin: int


def _run(index: np.ndarray) -> Run | None:
    """`index` as a run; None when it is not one."""
    inside = np.flatnonzero(index >= 0)
    if not inside.size:
        return None
    low, high, begin = int(inside[0]), int(inside[-1]) + 1, int(index[inside[0]])
    same = np.array_equal(index[low:high], np.arange(begin, begin + high - low))
    return Run(len(index), low, high, begin) if same else None


def choice(layer: Layer, indices: list[np.ndarray | None], fill: int = 0) -> Choice:
    """The kernel for an output whose index i along dimension d is the input's `indices[d][i]`; -1 is filled, None is
    a dimension left as it is."""
    x, y = layer.input(), layer.output
    if [d if i is None else len(i) for d, i in zip(x.shape, indices, strict=True)] != list(y.shape):
        raise Unsupported(f"its parameters do not lead to the shape {list(y.shape)}")
    rows, inner = list(enumerate(indices)), 1
    while rows and rows[-1][1] is None:
        inner *= x.shape[rows.pop()[0]]
    run = Run(inner, 0, inner, 0)
    if rows and rows[-1][1] is not None and (last := _run(rows[-1][1])):
        rows.pop()
        run = Run(*(part * inner for part in last))
    tables = _tables(layer, rows)
    tables = [np.zeros(1, "int64")] * (TABLES - len(tables)) + tables
    constants = [constant(f"table{i}", table.astype("int32")) for i, table in enumerate(tables)]
    sizes = [len(t) for t in tables]
    return Choice(_kernel(bits(x)), f"remap_{SHORT[bits(x)]}", [x, y, *constants, *sizes, *run, fill])


def _tables(layer: Layer, rows: list[tuple[int, np.ndarray | None]]) -> list[np.ndarray]:
    """Places of the indices of the leading dimensions; neighbours are joined until few enough are left."""
    shape = layer.input().shape
    tables = []
    for d, index in rows:
        stride = count(shape[d + 1 :])
        tables.append(np.arange(shape[d]) * stride if index is None else np.where(index < 0, -1, index * stride))
    while len(tables) > TABLES:
        at = min(range(len(tables) - 1), key=lambda i: len(tables[i]) * len(tables[i + 1]))
        left, right = tables[at][:, None], tables[at + 1][None, :]
        tables[at : at + 2] = [np.where((left < 0) | (right < 0), -1, left + right).reshape(-1)]
        if len(tables[at]) > MOST:
            raise Unsupported(f"it changes {len(rows)} dimensions, with {len(tables[at])} places of neighbouring ones")
    return tables


def _whole(layer: Layer) -> list[np.ndarray | None]:
    return [None] * len(layer.input().shape)


@operator("Slice", "StridedSlice")
def slices(layer: Layer) -> Choice:
    shape, indices = layer.input().shape, _whole(layer)
    begin, end = layer.wholes("begin"), layer.wholes("end")
    strides = layer.wholes("strides") if "strides" in layer.params else [1] * len(begin)
    if not len(begin) == len(end) == len(strides) == len(shape):
        raise Unsupported(f"begin, end and strides do not have {len(shape)} numbers each")
    for d, (size, first, last, step) in enumerate(zip(shape, begin, end, strides, strict=True)):
        step = step or 1
        stop = None if last == -1 and step < 0 else last  # walking down, -1 means through index 0
        index = np.arange(size)[first:stop:step]
        indices[d] = None if len(index) == size and step == 1 else index
    return choice(layer, indices)


@operator("Crop")
def crop(layer: Layer) -> Choice:
    crops, indices = layer.params.get("crops"), _whole(layer)
    if not isinstance(crops, list) or len(crops) != len(indices):
        raise Unsupported(f"'crops' is {crops!r}, expected [begin, end] per dimension")
    for d, (begin, end) in enumerate(crops):
        indices[d] = np.arange(layer.input().shape[d])[begin:end]
    return choice(layer, indices)


MODES = {"CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric", "EDGE": "edge", "WRAP": "wrap"}


@operator("Pad")
def pad(layer: Layer) -> Choice:
    pads, indices = layer.params.get("pads"), _whole(layer)
    mode = layer.word("mode", "CONSTANT", tuple(MODES))
    if (
        not isinstance(pads, list)
        or len(pads) != len(indices)
        or not all(isinstance(p, list) and len(p) == 2 and min(p) >= 0 for p in pads)
    ):
        raise Unsupported(f"'pads' is {pads!r}, expected [before, after] per dimension")
    for d, sides in enumerate(pads):
        if any(sides):
            more = {"constant_values": -1} if mode == "CONSTANT" else {}
            indices[d] = np.pad(np.arange(layer.input().shape[d]), sides, mode=MODES[mode], **more)  # type: ignore[call-overload]
    return choice(layer, indices, _bits_of(layer.number("constant_value", 0), str(layer.input().dtype)))


def _bits_of(value: float, dtype: str) -> int:
    """A number of a data type as the signed integer with the same bits."""
    formats = {"float32": ("<f", "<i"), "float16": ("<e", "<h")}
    if dtype in formats:
        packed, whole = formats[dtype]
        return int(struct.unpack(whole, struct.pack(packed, value))[0])
    return int(value)


@operator("Tile")
def tile(layer: Layer) -> Choice:
    repeats, shape = layer.wholes("repeats"), layer.input().shape
    if len(repeats) != len(shape):
        raise Unsupported(f"{len(repeats)} repeats for {len(shape)} dimensions")
    return choice(layer, [np.tile(np.arange(n), r) if r != 1 else None for n, r in zip(shape, repeats, strict=True)])


COORDINATES = {
    "HALF_PIXEL": lambda i, r, size, out: (i + 0.5) / r - 0.5,
    "ALIGN_CORNERS": lambda i, r, size, out: i * 0.0 if out == 1 else i * (size - 1) / (out - 1),
    "PYTORCH_HALF_PIXEL": lambda i, r, size, out: i * 0.0 if out == 1 else (i + 0.5) / r - 0.5,
    "TF_HALF_PIXEL_FOR_NN": lambda i, r, size, out: (i + 0.5) / r,
    "HALF_PIXEL_SYMMETRIC": lambda i, r, size, out: (i + 0.5) / r - 0.5 + size / 2 * (1 - out / (size * r)),
    "ASYMMETRIC": lambda i, r, size, out: i / r,
}
NEAREST = {
    "ROUND_PREFER_FLOOR": lambda c, r: np.ceil(c - 0.5),
    "ROUND_PREFER_CEIL": lambda c, r: np.floor(c + 0.5),
    "FLOOR": lambda c, r: np.floor(c),
    "CEIL": lambda c, r: np.ceil(c),
    "SIMPLE": lambda c, r: np.ceil(c) if r < 1 else np.trunc(c),
}


@operator("Resize", "Interp")
def resize(layer: Layer) -> Choice:
    layer.word("method", "", ("NEAREST",))
    mode = layer.word("mode", "HALF_PIXEL", tuple(COORDINATES))
    nearest = layer.word("nearest_mode", "ROUND_PREFER_FLOOR", tuple(NEAREST))
    x, y, indices = layer.input().shape, layer.output.shape, _whole(layer)
    if len(x) != 4 or len(y) != 4:
        raise Unsupported(f"{list(x)} is not an NHWC image")
    for d, key in ((1, "ratio_y"), (2, "ratio_x")):
        ratio = layer.number(key, y[d] / x[d])
        at = COORDINATES[mode](np.arange(y[d]), ratio, x[d], y[d])
        indices[d] = np.clip(NEAREST[nearest](at, ratio), 0, x[d] - 1).astype("int64")
    return choice(layer, indices)
