"""DMA operations: copies between memories, transposition, replication, filling."""

from __future__ import annotations

from typing import Any

from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir.dtypes import INT32, VOID, DataType
from .args import int32_arg, kind_of, pointer_arg, product, times
from .core import LazyModule, imm, np, special_op
from .numeric import literal, np_dtype
from .sync import sim_event
from .typing import fits, is_literal, type_error

GROUP = "DMA"

values: Any = LazyModule("compassc.pysim.values")
mem: Any = LazyModule("compassc.pysim.memory")

SRAM = ("lsram", "shared")
_MEMSET_SCOPES = ("global", "private", "lsram", "shared")
Copy = tuple[Any, Any, int, int, int, int]


def _scope_error(what: str, dst: str, src: str, why: str) -> CompassError:
    return CompassError(f"{what}: from {src} to {dst}: {why}", code="dma-scope")


def _same_dtype(what: str, dst: DataType, src: DataType) -> None:
    if dst is not src:
        raise type_error(f"{what}: dst is {dst}, src is {src}: the types differ", "retype one with as_ptr")
    if dst.is_void:
        raise type_error(f"{what}: void pointers have no element size", "retype them with as_ptr")


def _check_copy(what: str, dst: Any, src: Any) -> None:
    """Types and memories of a copy; both arguments are (dtype, scope)."""
    _same_dtype(what, dst[0], src[0])
    if "constant" in (dst[1], src[1]):
        raise _scope_error(what, dst[1], src[1], "DMA cannot reach constant memory")
    if dst[1] in SRAM and src[1] in SRAM:
        raise _scope_error(what, dst[1], src[1], "DMA copies between DDR and SRAM")


def _ir_kind(p: E.Expr) -> tuple[DataType, str]:
    return p.dtype.elem, p.dtype.scope


def _sim_kind(p: Any) -> tuple[DataType, str]:
    return p.dtype, p.scope


def _copy_args(
    what: str, dst: Any, src: Any, width: Any, src_stride: Any, count: Any, dst_stride: Any
) -> tuple[E.Expr, ...]:
    to, source = pointer_arg(dst, f"{what}: dst"), pointer_arg(src, f"{what}: src")
    _check_copy(what, _ir_kind(to), _ir_kind(source))
    size = to.dtype.elem.bytes
    row = times(int32_arg(width, f"{what}: width"), size)
    steps = [row if s is None else times(int32_arg(s, f"{what}: a stride"), size) for s in (src_stride, dst_stride)]
    return to, source, row, steps[0], product(row, int32_arg(count, f"{what}: times")), steps[1]


def _sim_copy(what: str, dst: Any, src: Any, width: Any, src_stride: Any, count: Any, dst_stride: Any) -> Copy:
    """The checked arguments of a copy in PySim: pointers, bytes per row, number of rows, strides in bytes."""
    to, source = mem.pointer_of(dst, f"{what}: dst"), mem.pointer_of(src, f"{what}: src")
    _check_copy(what, _sim_kind(to), _sim_kind(source))
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


def _number(x: Any, what: str, name: str) -> int:
    return x if type(x) is int else mem.index_of(x, f"{what}: {name}")


def _bytes(p: Any, size: int, what: str) -> Any:
    """The storage's bytes from a pointer on, at least `size` of them."""
    if p.storage is None:
        raise CompassError(f"{what}: a null pointer is accessed", code="null", help="test p.is_nullptr first")
    if p.offset < 0 or p.offset + size > p.storage.data.size:
        last = max(0, -(-size // p.dtype.bytes) - 1)
        raise mem.bounds_error(what, p, 0, last)
    return p.storage.data[p.offset : p.offset + size]


def _watched(p: Any, what: str, size: int, count: int, step: int, writes: bool) -> None:
    """Tell a checked memory about `count` rows of `size` bytes, `step` bytes apart."""
    if p.storage.watch is not None:
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
        return
    for k in range(rows):
        to[k * dst_step : k * dst_step + row] = source[k * src_step : k * src_step + row]


def _build_dma_copy(
    dst: Any, src: Any, width: Any, src_stride: Any = None, times: Any = 1, dst_stride: Any = None
) -> E.Expr:
    return E.Call("dma_copy", _copy_args("S.dma_copy", dst, src, width, src_stride, times, dst_stride), VOID)


@special_op(GROUP, _build_dma_copy, effect="write")
def dma_copy(dst: Any, src: Any, width: Any, src_stride: Any = None, times: Any = 1, dst_stride: Any = None) -> None:
    """Copy `times` rows of `width` elements by DMA and wait. Strides are elements between rows, default `width`."""
    _copy("S.dma_copy", _sim_copy("S.dma_copy", dst, src, width, src_stride, times, dst_stride))


def _build_async_dma_copy(
    dst: Any, src: Any, width: Any, src_stride: Any = None, times: Any = 1, dst_stride: Any = None, event: Any = None
) -> E.Expr:
    what = "S.async_dma_copy"
    if event is None:
        raise CompassError(
            f"{what}: an event must be given", code="event-missing", help="allocate one with S.alloc_events"
        )
    args = _copy_args(what, dst, src, width, src_stride, times, dst_stride)
    return E.Call("async_dma_copy", (*args, int32_arg(event, f"{what}: event")), VOID)


@special_op(GROUP, _build_async_dma_copy, effect="write")
def async_dma_copy(
    dst: Any, src: Any, width: Any, src_stride: Any = None, times: Any = 1, dst_stride: Any = None, event: Any = None
) -> None:
    """Start a copy in the background; `event` tells when it is done. Copies on one event run in order."""
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


# ---------------------------------------------------------------------------------------------------------- transposition


def _same_element(what: str, dst: DataType, src: DataType) -> None:
    if dst.element_of is not src.element_of or dst.is_void:
        raise type_error(f"{what}: dst is {dst}, src is {src}: the elements differ")


def _build_transpose(dst: Any, src: Any, row: Any, col: Any, dst_stride: Any = None, src_stride: Any = None) -> E.Expr:
    what = "S.dma_transpose2d"
    to, source = pointer_arg(dst, f"{what}: dst"), pointer_arg(src, f"{what}: src")
    _same_element(what, to.dtype.elem, source.dtype.elem)
    rows, cols = int32_arg(row, f"{what}: row"), int32_arg(col, f"{what}: col")
    src_step = cols if src_stride is None else int32_arg(src_stride, f"{what}: src_stride")
    dst_step = rows if dst_stride is None else int32_arg(dst_stride, f"{what}: dst_stride")
    size = to.dtype.elem.bytes
    return E.Call("dma_transpose2d", (source, to, cols, rows, src_step, dst_step), VOID, attrs=(("itemsize", size),))


def _grid_view(p: Any, rows: int, cols: int, step: int, what: str) -> Any:
    """A 2-D view of `rows` rows of `cols` elements, `step` elements apart."""
    size = p.dtype.bytes
    used = _bytes(p, ((rows - 1) * step + cols) * size, what)
    _watched(p, what, cols * size, rows, step * size, what.endswith("dst"))
    view = used.view(np_dtype(p.dtype))
    return np.lib.stride_tricks.as_strided(view, (rows, cols), (step * size, size))


@special_op(
    GROUP, _build_transpose, effect="write", ir_operands=("src", "dst", "col", "row", "src_stride", "dst_stride")
)
def dma_transpose2d(dst: Any, src: Any, row: Any, col: Any, dst_stride: Any = None, src_stride: Any = None) -> None:
    """Transpose a matrix of `row` x `col` elements by DMA and wait. Strides are elements between rows."""
    what = "S.dma_transpose2d"
    to, source = mem.pointer_of(dst, f"{what}: dst"), mem.pointer_of(src, f"{what}: src")
    _same_element(what, to.dtype, source.dtype)
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


# ------------------------------------------------------------------------------------------------------------ replication


def _check_upsample(dst: tuple[DataType, str], src: tuple[DataType, str]) -> None:
    what = "S.dma_upsample"
    _same_dtype(what, dst[0], src[0])
    outside = [scope.startswith("global") for scope in (dst[1], src[1])]
    if sum(outside) != 1 or (dst[1] if outside[1] else src[1]) not in SRAM:
        raise _scope_error(what, dst[1], src[1], "one side must be global, the other lsram or shared")


def _build_upsample(
    dst: Any, src: Any, h_scale: Any, w_scale: Any, c: Any, w: Any,
    src_c_stride: Any = None, dst_c_stride: Any = None, dst_w_stride: Any = None,
) -> E.Expr:  # fmt: skip
    what = "S.dma_upsample"
    to, source = pointer_arg(dst, f"{what}: dst"), pointer_arg(src, f"{what}: src")
    _check_upsample(_ir_kind(to), _ir_kind(source))
    size = to.dtype.elem.bytes
    high, wide = int32_arg(h_scale, f"{what}: h_scale"), int32_arg(w_scale, f"{what}: w_scale")
    pixel, pixels = times(int32_arg(c, f"{what}: c"), size), int32_arg(w, f"{what}: w")
    steps = [
        pixel if s is None else times(int32_arg(s, f"{what}: a stride"), size) for s in (src_c_stride, dst_c_stride)
    ]
    row = product(pixels, wide) if dst_w_stride is None else int32_arg(dst_w_stride, f"{what}: dst_w_stride")
    return E.Call("dma_upsample", (to, source, high, wide, pixel, pixels, steps[0], steps[1], row), VOID)


@special_op(GROUP, _build_upsample, effect="write")
def dma_upsample(
    dst: Any, src: Any, h_scale: Any, w_scale: Any, c: Any, w: Any,
    src_c_stride: Any = None, dst_c_stride: Any = None, dst_w_stride: Any = None,
) -> None:  # fmt: skip
    """Replicate one row of `w` pixels of `c` elements `w_scale` times across and `h_scale` times down, by DMA."""
    what = "S.dma_upsample"
    to, source = mem.pointer_of(dst, f"{what}: dst"), mem.pointer_of(src, f"{what}: src")
    _check_upsample(_sim_kind(to), _sim_kind(source))
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


# ---------------------------------------------------------------------------------------------------------------- filling


def _check_memset(elem: DataType, scope: str) -> None:
    if scope not in _MEMSET_SCOPES:
        raise CompassError(
            f"S.dma_memset: {scope} memory cannot be filled", code="dma-scope", help=f"use {', '.join(_MEMSET_SCOPES)}"
        )
    if elem.is_void:
        raise type_error("S.dma_memset: a void pointer has no element size", "retype it with as_ptr")


def _check_fill(value: Any, elem: DataType) -> None:
    """Refuse a literal out of range, or an expression of another type than the element."""
    if is_literal(value):
        if not fits(value, elem):
            raise type_error(f"S.dma_memset: {value!r} does not fit {elem}")
    elif value.dtype is not elem:
        raise type_error(f"S.dma_memset: the value is {value.dtype}, the memory {elem}", "convert it")


def _build_memset(ptr: Any, value: Any, num: Any) -> E.Expr:
    to = pointer_arg(ptr, "S.dma_memset: ptr")
    elem = to.dtype.elem.element_of
    _check_memset(elem, to.dtype.scope)
    if not is_literal(value) and not isinstance(value, E.Expr):
        raise type_error(f"S.dma_memset: {kind_of(value)} is not a value")
    _check_fill(value, elem)
    if is_literal(value):
        bits = int(literal(value, elem).view(f"u{elem.bytes}")) if elem.is_floating else int(value)
        fill: E.Expr = imm(bits if elem.bits < 32 or bits < 1 << 31 else bits - (1 << 32), INT32)
    else:
        fill = E.Reinterpret(elem.with_type_code("int"), value) if elem.is_floating else value
    count = times(int32_arg(num, "S.dma_memset: num"), elem.bytes)
    return E.Call("dma_memset", (to, count, fill), VOID, attrs=(("itemsize", elem.bytes),))


@special_op(GROUP, _build_memset, effect="write", ir_operands=("ptr", "num", "value"))
def dma_memset(ptr: Any, value: Any, num: Any) -> None:
    """Fill `num` scalar elements with `value` by DMA and wait."""
    to = mem.pointer_of(ptr, "S.dma_memset: ptr")
    elem = to.dtype.element_of
    _check_memset(elem, to.scope)
    _check_fill(value, elem)
    count = _number(num, "S.dma_memset", "num")
    if count < 0:
        raise CompassError(f"S.dma_memset: num must not be negative, got {count}", code="dma-size")
    if count:
        _watched(to, "S.dma_memset", count * elem.bytes, 1, 0, True)
        _bytes(to, count * elem.bytes, "S.dma_memset").view(np_dtype(elem))[:] = values.to_element(value, elem)
