"""Copies by DMA."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc.ir.dtypes import DataType
from compassc.ops.dma import SRAM, check_copy, check_fill, check_memset, check_upsample, same_element
from compassc.ops.numeric import np_dtype

from ...language.dispatch import LOCAL
from ..impl import operand_type
from ..memory import PyPointer, bounds_error, index_of, pointer_of
from ..values import to_element
from . import meaning
from .sync import sim_event

Copy = tuple[PyPointer, PyPointer, int, int, int, int]


def _sim_kind(p: PyPointer) -> tuple[DataType, str]:
    return p.dtype, p.scope


def _sim_copy(
    what: str, dst: object, src: object, width: object, src_stride: object, count: object, dst_stride: object
) -> Copy:
    """The checked arguments of a copy in PySim: pointers, bytes per row, number of rows, strides in bytes."""
    to, source = pointer_of(dst, f"{what}: dst"), pointer_of(src, f"{what}: src")
    check_copy(what, _sim_kind(to), _sim_kind(source))
    size = to.dtype.bytes
    row, rows = _number(width, what, "width"), _number(count, what, "times")
    steps = [row if s is None else _number(s, what, "a stride") for s in (src_stride, dst_stride)]
    for name, value, least in (
        ("width", row, 0),
        ("times", rows, 0),
        ("src_stride", steps[0], row),
        ("dst_stride", steps[1], row),
    ):
        if value < least:
            raise CompassError(f"{what}: {name} must be at least {least}, got {value}", code="dma-size")
    return to, source, row * size, rows, steps[0] * size, steps[1] * size


def _number(x: object, what: str, name: str) -> int:
    return x if type(x) is int else index_of(x, f"{what}: {name}")


def _bytes(p: PyPointer, size: int, what: str) -> Array:
    """The storage's bytes from a pointer on, at least `size` of them."""
    if p.storage is None:
        raise CompassError(f"{what}: a null pointer is accessed", code="null", help="test p.is_nullptr first")
    if p.offset < 0 or p.offset + size > p.storage.data.size:
        last = max(0, -(-size // p.dtype.bytes) - 1)
        raise bounds_error(what, p, 0, last)
    return p.storage.data[p.offset : p.offset + size]


def _watched(p: PyPointer, what: str, size: int, count: int, step: int, writes: bool) -> None:
    """Tell a checked memory about `count` rows of `size` bytes, `step` bytes apart."""
    if p.storage is not None and p.storage.watch is not None:
        p.storage.watch.access(what, p.offset, size, count, step, writes, None)


def _copy(what: str, copy: Copy) -> None:
    dst, src, row, rows, src_step, dst_step = copy
    if row == 0 or rows == 0:
        return
    to = _bytes(dst, (rows - 1) * dst_step + row, f"{what}: dst")
    source = _bytes(src, (rows - 1) * src_step + row, f"{what}: src")
    _watched(src, what, row, rows, src_step, False)
    _watched(dst, what, row, rows, dst_step, True)
    if src_step == dst_step == row:
        to[:] = source
    elif not np.may_share_memory(to, source):
        _rows(to, rows, row, dst_step)[:] = _rows(source, rows, row, src_step)
    else:
        for k in range(rows):
            to[k * dst_step : k * dst_step + row] = source[k * src_step : k * src_step + row]


def _rows(part: Array, count: int, row: int, step: int) -> Array:
    """A view of rows of bytes that begin `step` bytes apart."""
    return np.ndarray((count, row), np.uint8, part, 0, (step, 1))


@meaning
def dma_copy(
    dst: object,
    src: object,
    width: object,
    src_stride: object = None,
    times: object = 1,
    dst_stride: object = None,
    only_read: bool = False,
) -> None:
    copy = _sim_copy("S.dma_copy", dst, src, width, src_stride, times, dst_stride)
    _copy("S.dma_copy", copy)
    tiles = LOCAL.tec.tiles if LOCAL.tec is not None else None
    if tiles is not None:
        tiles += [p.storage for p in copy[:2] if p.scope in SRAM and p.storage not in tiles]


@meaning
def async_dma_copy(
    dst: object,
    src: object,
    width: object,
    src_stride: object = None,
    times: object = 1,
    dst_stride: object = None,
    event: object = None,
) -> None:
    what = "S.async_dma_copy"
    if event is None:
        raise CompassError(
            f"{what}: an event must be given", code="event-missing", help="allocate one with S.alloc_events"
        )
    owner = sim_event(event, what)
    copy = _sim_copy(what, dst, src, width, src_stride, times, dst_stride)
    for p, rows_step in ((copy[0], copy[5]), (copy[1], copy[4])):
        if copy[2] and copy[3]:
            _bytes(p, (copy[3] - 1) * rows_step + copy[2], what)  # refuse here, not where the event is waited for
    owner.pending.append(lambda: _copy(what, copy))


def _grid_view(p: PyPointer, rows: int, cols: int, step: int, what: str) -> Array:
    """A 2-D view of `rows` rows of `cols` elements, `step` elements apart."""
    size = p.dtype.bytes
    used = _bytes(p, ((rows - 1) * step + cols) * size, what)
    _watched(p, what, cols * size, rows, step * size, what.endswith("dst"))
    view = used.view(np_dtype(p.dtype))
    return np.lib.stride_tricks.as_strided(view, (rows, cols), (step * size, size))


@meaning
def dma_transpose2d(
    dst: object, src: object, row: object, col: object, dst_stride: object = None, src_stride: object = None
) -> None:
    what = "S.dma_transpose2d"
    to, source = pointer_of(dst, f"{what}: dst"), pointer_of(src, f"{what}: src")
    same_element(what, to.dtype, source.dtype)
    rows, cols = _number(row, what, "row"), _number(col, what, "col")
    src_step = cols if src_stride is None else _number(src_stride, what, "src_stride")
    dst_step = rows if dst_stride is None else _number(dst_stride, what, "dst_stride")
    for name, value, least in (
        ("row", rows, 0),
        ("col", cols, 0),
        ("src_stride", src_step, cols),
        ("dst_stride", dst_step, rows),
    ):
        if value < least:
            raise CompassError(f"{what}: {name} must be at least {least}, got {value}", code="dma-size")
    if rows and cols:
        matrix = _grid_view(source, rows, cols, src_step, f"{what}: src")
        _grid_view(to, cols, rows, dst_step, f"{what}: dst")[:] = matrix.T.copy()


@meaning
def dma_upsample(
    dst: object,
    src: object,
    h_scale: object,
    w_scale: object,
    c: object,
    w: object,
    src_c_stride: object = None,
    dst_c_stride: object = None,
    dst_w_stride: object = None,
) -> None:
    what = "S.dma_upsample"
    to, source = pointer_of(dst, f"{what}: dst"), pointer_of(src, f"{what}: src")
    check_upsample(_sim_kind(to), _sim_kind(source))
    high, wide, pixel, pixels = (
        _number(x, what, n) for x, n in ((h_scale, "h_scale"), (w_scale, "w_scale"), (c, "c"), (w, "w"))
    )
    src_step, dst_step = (pixel if s is None else _number(s, what, "a stride") for s in (src_c_stride, dst_c_stride))
    row = pixels * wide if dst_w_stride is None else _number(dst_w_stride, what, "dst_w_stride")
    limits = (
        ("src_c_stride", src_step, pixel),
        ("dst_c_stride", dst_step, pixel),
        ("dst_w_stride", row, pixels * wide),
    )
    for name, value, least in limits:
        if value < least:
            raise CompassError(f"{what}: {name} must be at least {least}, got {value}", code="dma-size")
    if wide > 255:
        raise CompassError(f"{what}: w_scale must be at most 255, got {wide}", code="dma-size")
    if not (high and wide and pixel and pixels):
        return
    line = np.repeat(_grid_view(source, pixels, pixel, src_step, f"{what}: src"), wide, axis=0)
    out = _grid_view(to, (high - 1) * row + pixels * wide, pixel, dst_step, f"{what}: dst")
    for k in range(high):
        out[k * row : k * row + pixels * wide] = line


@meaning
def dma_memset(ptr: object, value: object, num: object) -> None:
    to = pointer_of(ptr, "S.dma_memset: ptr")
    elem = to.dtype.element_of
    check_memset(elem, to.scope)
    check_fill(operand_type("dma_memset", value), elem)
    count = _number(num, "S.dma_memset", "num")
    if count < 0:
        raise CompassError(f"S.dma_memset: num must not be negative, got {count}", code="dma-size")
    if count:
        _watched(to, "S.dma_memset", count * elem.bytes, 1, 0, True)
        _bytes(to, count * elem.bytes, "S.dma_memset").view(np_dtype(elem))[:] = to_element(value, elem)
