"""DMA operations: copies between memories, transposition, replication, filling."""

from __future__ import annotations

import math
from collections.abc import Mapping

from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir.dtypes import INT32, VOID, DataType
from .args import int32_arg, kind_of, pointer_arg, product, times
from .core import Cost, Part, Size, Touch, imm, operand_of, special_op
from .effects import Arg, grid, rows
from .example import Example
from .numeric import literal
from .sync import COPY_IN_BACKGROUND
from .typing import Operand, fits, is_literal, type_error

GROUP = "DMA"
IN_MEMORY: Mapping[Part, str] = {
    "definition": "it moves bytes: tests/ops/test_memory_sim.py and tests/sim compare memory"
}

SRAM = ("lsram", "shared")

_MEMSET_SCOPES = ("global", "private", "lsram", "shared")


def _scope_error(what: str, dst: str, src: str, why: str, help: str = "") -> CompassError:
    return CompassError(f"{what}: from {src} to {dst}: {why}", code="dma-scope", help=help)


def _same_dtype(what: str, dst: DataType, src: DataType) -> None:
    if dst is not src:
        raise type_error(f"{what}: dst is {dst}, src is {src}: the types differ", "retype one with as_ptr")
    if dst.is_void:
        raise type_error(f"{what}: void pointers have no element size", "retype them with as_ptr")


def check_copy(what: str, dst: tuple[DataType, str], src: tuple[DataType, str]) -> None:
    """Types and memories of a copy; both arguments are (dtype, scope)."""
    _same_dtype(what, dst[0], src[0])
    if "constant" in (dst[1], src[1]):
        raise _scope_error(what, dst[1], src[1], "DMA cannot reach constant memory")
    if dst[1] in SRAM and src[1] in SRAM:
        raise _scope_error(
            what,
            dst[1],
            src[1],
            "the DMA unit of no target copies between two SRAMs, it copies between DDR and SRAM",
            "copy vectors: for i in range(0, n, 8): S.vstore(S.vload(src + i), dst + i)",
        )


def _ir_kind(p: E.Expr) -> tuple[DataType, str]:
    return p.pointer_type.elem, p.pointer_type.scope


def _copy_args(
    what: str, dst: object, src: object, width: object, src_stride: object, count: object, dst_stride: object
) -> tuple[E.Expr, ...]:
    to, source = pointer_arg(dst, f"{what}: dst"), pointer_arg(src, f"{what}: src")
    check_copy(what, _ir_kind(to), _ir_kind(source))
    size = to.pointer_type.elem.bytes
    row = times(int32_arg(width, f"{what}: width"), size)
    steps = [row if s is None else times(int32_arg(s, f"{what}: a stride"), size) for s in (src_stride, dst_stride)]
    return to, source, row, steps[0], product(row, int32_arg(count, f"{what}: times")), steps[1]


COPY = (Touch(0, "w", rows(2, 5, 4)), Touch(1, "r", rows(2, 3, 4)))


@special_op(
    group=GROUP,
    operands=("dst", "src", "width", "src_stride", "size", "dst_stride"),
    effect="write",
    touches=COPY,
    cost=Cost("dma", {"DmaDirect_*": "dma"}),
    options=("only_read",),
    example=Example('s = S.alloc(8, "i32", "lsram")\nS.dma_copy(s, x, 8)\nS.dma_copy(out, s, 2, 4, 2, 2)'),
    exempt=IN_MEMORY,
)
def dma_copy(
    dst: object,
    src: object,
    width: object,
    src_stride: object = None,
    times: object = 1,
    dst_stride: object = None,
    only_read: bool = False,
) -> E.Expr:
    """Copy `times` rows of `width` elements by DMA and wait. Strides are elements between rows, default `width`.

    `only_read` promises that the copy is only read, by `dst`, a pointer in a variable of its own, and no further than it
    reaches, and that nothing writes the source meanwhile: the simulator then may read the source in its place. PySim, checks
    and profiles copy. Ours.
    """
    args = _copy_args("S.dma_copy", dst, src, width, src_stride, times, dst_stride)
    return E.Call("dma_copy", args, VOID, attrs=(("only_read", True),) if only_read else ())


@special_op(
    group=GROUP,
    operands=("dst", "src", "width", "src_stride", "size", "dst_stride", "event"),
    effect="write",
    touches=COPY,
    cost=Cost("dma", {"AsyncDmaDirect_*": "dma"}),
    example=COPY_IN_BACKGROUND,
    exempt=IN_MEMORY,
)
def async_dma_copy(
    dst: object,
    src: object,
    width: object,
    src_stride: object = None,
    times: object = 1,
    dst_stride: object = None,
    event: object = None,
) -> E.Expr:
    """Start a copy in the background; `event` tells when it is done. Copies on one event run in order."""
    what = "S.async_dma_copy"
    if event is None:
        raise CompassError(
            f"{what}: an event must be given", code="event-missing", help="allocate one with S.alloc_events"
        )
    args = _copy_args(what, dst, src, width, src_stride, times, dst_stride)
    return E.Call("async_dma_copy", (*args, int32_arg(event, f"{what}: event")), VOID)


# ---------------------------------------------------------------------------------------------------------- transposition


def same_element(what: str, dst: DataType, src: DataType) -> None:
    if dst.element_of is not src.element_of or dst.is_void:
        raise type_error(f"{what}: dst is {dst}, src is {src}: the elements differ")


@special_op(
    group=GROUP,
    options=("itemsize",),
    effect="write",
    touches=(Touch(0, "r", grid(3, 4, 2)), Touch(1, "w", grid(2, 5, 3))),
    operands=("src", "dst", "col", "row", "src_stride", "dst_stride"),
    cost=Cost("dma", {"__compass_transpose": "dma"}),
    example=Example('s = S.alloc(8, "i32", "lsram")\nS.dma_transpose2d(s, x, 2, 4)\nS.dma_copy(out, s, 8)'),
    exempt=IN_MEMORY,
)
def dma_transpose2d(
    dst: object, src: object, row: object, col: object, dst_stride: object = None, src_stride: object = None
) -> E.Expr:
    """Transpose a matrix of `row` x `col` elements by DMA and wait. Strides are elements between rows."""
    what = "S.dma_transpose2d"
    to, source = pointer_arg(dst, f"{what}: dst"), pointer_arg(src, f"{what}: src")
    same_element(what, to.pointer_type.elem, source.pointer_type.elem)
    rows, cols = int32_arg(row, f"{what}: row"), int32_arg(col, f"{what}: col")
    src_step = cols if src_stride is None else int32_arg(src_stride, f"{what}: src_stride")
    dst_step = rows if dst_stride is None else int32_arg(dst_stride, f"{what}: dst_stride")
    size = to.pointer_type.elem.bytes
    return E.Call("dma_transpose2d", (source, to, cols, rows, src_step, dst_step), VOID, attrs=(("itemsize", size),))


# ------------------------------------------------------------------------------------------------------------ replication


def check_upsample(dst: tuple[DataType, str], src: tuple[DataType, str]) -> None:
    what = "S.dma_upsample"
    _same_dtype(what, dst[0], src[0])
    outside = [scope.startswith("global") for scope in (dst[1], src[1])]
    if sum(outside) != 1 or (dst[1] if outside[1] else src[1]) not in SRAM:
        raise _scope_error(what, dst[1], src[1], "one side must be global, the other lsram or shared")


_REPLICATED: Size = ["mul", ["add", ["mul", ["sub", Arg(2), 1], Arg(8)], ["mul", Arg(5), Arg(3)]], Arg(7)]


@special_op(
    group=GROUP,
    operands=("dst", "src", "h_scale", "w_scale", "c", "w", "src_c_stride", "dst_c_stride", "dst_w_stride"),
    effect="write",
    touches=(Touch(0, "w", _REPLICATED), Touch(1, "r", ["add", ["mul", ["sub", Arg(5), 1], Arg(6)], Arg(4)])),
    cost=Cost("dma", {"DmaUpsample_*": "dma"}),
    example=Example('s = S.alloc(8, "i32", "lsram")\nS.dma_upsample(s, x, 2, 2, 1, 2)\nS.dma_copy(out, s, 8)', size=2),
    exempt=IN_MEMORY,
)
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
) -> E.Expr:
    """Replicate one row of `w` pixels of `c` elements `w_scale` times across and `h_scale` times down, by DMA."""
    what = "S.dma_upsample"
    to, source = pointer_arg(dst, f"{what}: dst"), pointer_arg(src, f"{what}: src")
    check_upsample(_ir_kind(to), _ir_kind(source))
    size = to.pointer_type.elem.bytes
    high, wide = int32_arg(h_scale, f"{what}: h_scale"), int32_arg(w_scale, f"{what}: w_scale")
    pixel, pixels = times(int32_arg(c, f"{what}: c"), size), int32_arg(w, f"{what}: w")
    steps = [
        pixel if s is None else times(int32_arg(s, f"{what}: a stride"), size) for s in (src_c_stride, dst_c_stride)
    ]
    row = product(pixels, wide) if dst_w_stride is None else int32_arg(dst_w_stride, f"{what}: dst_w_stride")
    return E.Call("dma_upsample", (to, source, high, wide, pixel, pixels, steps[0], steps[1], row), VOID)


# ---------------------------------------------------------------------------------------------------------------- filling


def check_memset(elem: DataType, scope: str) -> None:
    if scope not in _MEMSET_SCOPES:
        raise CompassError(
            f"S.dma_memset: {scope} memory cannot be filled", code="dma-scope", help=f"use {', '.join(_MEMSET_SCOPES)}"
        )
    if elem.is_void:
        raise type_error("S.dma_memset: a void pointer has no element size", "retype it with as_ptr")


def check_fill(value: Operand, elem: DataType) -> None:
    """Refuse a literal out of range, or a value of another type than the element."""
    if is_literal(value):
        if not (fits(value, elem) or (elem.is_floating and not math.isfinite(value))):
            raise type_error(f"S.dma_memset: {value!r} does not fit {elem}")
    elif value is not elem:
        raise type_error(f"S.dma_memset: the value is {value}, the memory {elem}", "convert it")


@special_op(
    group=GROUP,
    options=("itemsize",),
    effect="write",
    touches=(Touch(0, "w", Arg(1)),),
    operands=("ptr", "num", "value"),
    cost=Cost("dma", {"__compass_memset": "dma"}),
    example=Example('s = S.alloc(8, "i32", "lsram")\nS.dma_memset(s, 7, 8)\nS.vstore(S.vload(s), out)'),
    exempt=IN_MEMORY,
)
def dma_memset(ptr: object, value: object, num: object) -> E.Expr:
    """Fill `num` scalar elements with `value` by DMA and wait."""
    to = pointer_arg(ptr, "S.dma_memset: ptr")
    elem = to.pointer_type.elem.element_of
    check_memset(elem, to.pointer_type.scope)
    if not is_literal(value) and not isinstance(value, E.Expr):
        raise type_error(f"S.dma_memset: {kind_of(value)} is not a value")
    check_fill(operand_of(value), elem)
    if is_literal(value):
        bits = int(literal(value, elem).view(f"u{elem.bytes}")) if elem.is_floating else int(value)
        fill: E.Expr = imm(bits if elem.bits < 32 or bits < 1 << 31 else bits - (1 << 32), INT32)
    else:
        fill = E.Reinterpret(elem.with_type_code("int"), value) if elem.is_floating else value
    count = times(int32_arg(num, "S.dma_memset: num"), elem.bytes)
    return E.Call("dma_memset", (to, count, fill), VOID, attrs=(("itemsize", elem.bytes),))
