"""`tvm.topi.utils`: numbers of shapes, indices, and stages that are to be inlined."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, TypeVar

from compass_core.namedtuple import NamedTuple

from .. import te
from ..ir.exprs import Expr, FloatImm, IntImm
from ..ir.operators import as_expr, binary
from ..targets import Target
from ..te.analyzer import Analyzer
from .topi_references import pads_of


class InvalidShapeError(ValueError):
    """A shape that an operator does not take."""


Size = int | Expr
"""A size of a shape, or an index."""
T = TypeVar("T")


def simplify(expr: T) -> T | Expr:
    """An expression in a simpler form; other values as they are."""
    return Analyzer().simplify(expr) if isinstance(expr, Expr) else expr


def _number(expr: object) -> int | None:
    if isinstance(expr, int):
        return expr
    found = simplify(as_expr(expr))
    return found.value if isinstance(found, IntImm) else None


def get_const_int(expr: object) -> int:
    """The whole number that an expression is. ValueError for others."""
    found = _number(expr)
    if found is None:
        raise ValueError(f"expected a constant integer, got {expr}")
    return found


def get_const_float(expr: object) -> float:
    """The real number that an expression is. ValueError for others."""
    found = simplify(as_expr(expr))
    if isinstance(found, FloatImm):
        return float(found.value)
    raise ValueError(f"expected a constant float, got {expr}")


def equal_const_int(expr: object, value: int) -> bool:
    """Whether an expression is this number."""
    return _number(expr) == value


def get_const_tuple(in_tuple: Iterable[Size]) -> tuple[Any, ...]:
    """Sizes as a tuple: numbers where they are constant, else the expressions."""
    numbers = ((_number(e), e) for e in in_tuple)
    return tuple(simplify(e) if number is None else number for number, e in numbers)


def get_float_tuple(in_tuple: Iterable[object]) -> tuple[float, ...]:
    """Real numbers as a tuple."""
    return tuple(map(get_const_float, in_tuple))


def prod(x: Iterable[Size]) -> Size:
    """The product of numbers or expressions; 1 of none."""
    given = list(x)
    return reduce(lambda a, b: a * b, given) if given else 1


def ceil_div(a: Size, b: Size) -> Expr:
    """The quotient, rounded up."""
    return simplify(binary("floordiv", as_expr(a) + b - 1, as_expr(b)))


def is_empty_shape(shape: Iterable[object]) -> bool:
    """Whether a size is 0."""
    return any(_number(e) == 0 for e in shape)


def is_dynamic_shape(shape: Iterable[object]) -> bool:
    """Whether a size is no number."""
    return any(_number(e) is None for e in shape)


def swap(arr: Sequence[object], axis: int) -> list[object]:
    """The items with the one at `axis` and the last one changed over."""
    made = list(arr)
    made[axis], made[-1] = made[-1], made[axis]
    return made


def ravel_index(indices: Sequence[Size], shape: Sequence[Size]) -> Size | None:
    """The place of an element among all, in order of rows; None without axes."""
    at: Size | None = None
    for index, size in zip(indices, shape, strict=True):
        at = index if at is None else at * size + index
    return at


def unravel_index(idx: Size, shape: Sequence[Size]) -> list[Size]:
    """The indices of the element at a place."""
    found: list[Size] = []
    for size in reversed(list(shape)):
        found.append(idx % size)
        idx = idx // size
    return found[::-1]


def get_max_power2_factor(n: int, max_value: int | None = None) -> int:
    """The largest power of two that divides `n`, up to `max_value`."""
    found = 1
    while n % 2 == 0 and not (max_value is not None and max_value < found * 2):
        found, n = found * 2, n // 2
    return found


def get_shape(src_shape: Sequence[Size], src_layout: object, dst_layout: object) -> tuple[Size, ...]:
    """A shape in another order of the same axes, which have one letter each."""
    source, wanted = str(src_layout), str(dst_layout)
    if sorted(source) != sorted(wanted):
        raise ValueError(f"the layouts {source} and {wanted} have other axes than each other")
    return get_const_tuple(src_shape[source.index(axis)] for axis in wanted)


def is_target(names: str | Iterable[str]) -> bool:
    """Whether the current target has one of these names among its keys."""
    current = Target.current()
    listed = [names] if isinstance(names, str) else list(names)
    return current is not None and any(name in (current.kind.name, *current.kind.keys) for name in listed)


def _layout_like(axes: str, blocks: str) -> Callable[[str], bool]:
    """Whether a layout is one of these axes, with blocks of those sizes behind them."""
    pattern = re.compile(axes + "".join(rf"\d+{axis}" for axis in blocks))
    return lambda layout: pattern.fullmatch(layout) is not None


nchw_pack_layout, nchw_xc_layout = _layout_like("NCHW", "nc"), _layout_like("NCHW", "c")
ncw_pack_layout, ncw_xc_layout = _layout_like("NCW", "nc"), _layout_like("NCW", "c")


def within_index(b: Size, e: Size, s: Size, i: Expr) -> Expr:
    """Whether `i` is one of the indices from `b` to `e` in steps of `s`, which may be negative."""
    steps = as_expr(s)
    up = te.all(i >= b, i < e)
    down = te.all(i <= b, i > e)
    inside = te.Select(steps > 0, te.cast(up, "int32"), te.cast(down, "int32")) != 0
    made: Expr = te.all(inside, te.floormod(te.abs(i - b), te.abs(steps)) == 0)
    return made


def make_idx(b: Size, e: Size, s: Size, z: Size, i: Expr) -> Expr:
    """The place that `i` has among the indices from `b` to `e` in steps of `s`, of which negative ones count from the end
    `z`; the last one for what is none of them."""
    low, high = (te.Select(as_expr(v) < 0, as_expr(v) + z, as_expr(v)) for v in (b, e))
    return te.Select(within_index(low, high, s, i), te.truncdiv(te.abs(i - low), te.abs(as_expr(s))), as_expr(z))


def const_vector(vector: object, name: str = "const_vector") -> te.Tensor:
    """A tensor of constant numbers, by a chain of choices."""
    return _constant(vector, name, 1)


def const_matrix(matrix: object, name: str = "const_matrix", attrs: object = None) -> te.Tensor:
    """A tensor of constant numbers in rows, by a chain of choices."""
    return _constant(matrix, name, 2)


def _constant(array: object, name: str, rank: int) -> te.Tensor:
    import numpy as np

    values = np.asarray(array)
    if values.ndim != rank:
        raise ValueError(f"'{name}' has {values.ndim} dimensions, expected {rank}")

    def element(*index: te.Var) -> Expr:
        found: Expr = te.const(0, str(values.dtype))
        for place in np.ndindex(values.shape):
            here = te.all(*(i == p for i, p in zip(index, place, strict=True)))
            found = te.Select(here, te.const(values[place].item(), str(values.dtype)), found)
        return found

    made: te.Tensor = te.compute(values.shape, element, name=name)
    return made


def traverse_inline(s: te.Schedule, final_op: te.Operation, callback: Callable[[te.Operation], object]) -> None:
    """Calls `callback` with each operation that `final_op` is computed from, inputs first, and inlines those that map
    elements and are not the last."""
    seen: set[te.Operation] = set()

    def visit(op: te.Operation) -> None:
        if op in seen:
            return
        seen.add(op)
        if is_injective(op.tag) and op not in s.outputs and isinstance(op, te.ComputeOp):
            s[op].compute_inline()
        for tensor in op.input_tensors:
            if not isinstance(tensor.op, te.PlaceholderOp):
                visit(tensor.op)
        callback(op)

    visit(final_op)


ELEMWISE, BROADCAST, INJECTIVE = "elemwise", "broadcast", "injective"
COMM_REDUCE, COMM_REDUCE_IDX = "comm_reduce", "comm_reduce_idx"


def is_broadcast(tag: str) -> bool:
    """Whether the tag is one of operations that map elements of the same places, or of stretched ones."""
    return tag in (ELEMWISE, BROADCAST) or tag.startswith((ELEMWISE, BROADCAST))


def is_injective(tag: str) -> bool:
    """Whether the tag is one of operations each of whose elements is made of one of each input."""
    return is_broadcast(tag) or tag.startswith(INJECTIVE)


def get_pad_tuple_generic(padding: object, kernel: Sequence[int]) -> tuple[int, ...]:
    """The elements before each dimension, then those after: of a number, of one for each dimension or side, or of `VALID` and
    `SAME`. ValueError for other texts."""
    if isinstance(padding, str) and padding not in ("VALID", "SAME"):
        raise ValueError(f"unknown padding option {padding}")
    sides = pads_of(padding, get_const_tuple(kernel))
    return (*(a for a, _ in sides), *(b for _, b in sides))


get_pad_tuple = get_pad_tuple1d = get_pad_tuple3d = get_pad_tuple_generic


class Workload(NamedTuple):
    """What a convolution computes: types, sizes, window, padding (top, left, bottom, right), dilation and strides."""

    in_dtype: str
    out_dtype: str
    height: int
    width: int
    in_filter: int
    groups: int
    out_filter: int
    kernel_h: int
    kernel_w: int
    padt: int
    padl: int
    padb: int
    padr: int
    dilation_h: int
    dilation_w: int
    stride_h: int
    stride_w: int


def get_workload(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: int | Sequence[int],
    padding: object,
    dilation: int | Sequence[int],
    out_dtype: str,
    data_layout: str = "NCHW",
) -> Workload:
    """The workload of a convolution of NCHW by OIHW, or of NHWC by HWIO. ValueError for other layouts."""
    if data_layout not in ("NCHW", "NHWC"):
        raise ValueError(f"workloads have the layouts NCHW and NHWC, not {data_layout}")
    own, weights = get_const_tuple(data.shape), get_const_tuple(kernel.shape)
    _, channels, height, width = own if data_layout == "NCHW" else (own[0], own[3], *own[1:3])
    outputs, each, kh, kw = weights if data_layout == "NCHW" else (*weights[:1:-1], *weights[:2])
    (dh, dw), (sh, sw) = ((v, v) if isinstance(v, int) else tuple(v) for v in (dilation, stride))
    top, left, bottom, right = get_pad_tuple_generic(padding, [(kh - 1) * dh + 1, (kw - 1) * dw + 1])
    shape = (height, width, channels, channels // each, outputs, kh, kw)
    return Workload(str(data.dtype), out_dtype, *shape, top, left, bottom, right, dh, dw, sh, sw)
