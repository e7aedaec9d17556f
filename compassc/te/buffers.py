"""Buffers in statements of the user's: what they stand for, elements and addresses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from compass_core import vendor
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import FLOAT32, INT32, DataType, pointer_type
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Buffer, Expr, IntImm, Var
from compassc.ir.operators import as_expr, binary, data_type, immediate, kind_of
from compassc.ir.stmts import Stmt
from compassc.te.construct import shape_of
from compassc.te.errors import LowerError
from compassc.te.tensor import Tensor
from compassc.te.tensor_calls import number_of

_ZERO, _ONE = IntImm(INT32, 0), IntImm(INT32, 1)


class View:
    """A buffer in statements: `view[i, j]` is the value of an element, `view.store(value, i, j)` writes one,
    `view.ptr(i, j)` is its address.

    `declared_strides`: the elements between neighbours in each dimension; a variable stands for what they turn out to be,
    and nothing says that the elements lie one after another.
    """

    def __init__(self, buffer: Buffer, declared_strides: tuple[Expr, ...] = ()) -> None:
        self.buffer, self.declared_strides = buffer, declared_strides

    elem_offset: Expr = _ZERO
    data_alignment, offset_factor = 64, 1

    @property
    def name(self) -> str:
        return self.buffer.data.name

    @property
    def axis_separators(self) -> tuple[int, ...]:
        """How many dimensions stand before each boundary between physical ones."""
        return self.buffer.axis_separators

    @property
    def data(self) -> Var:
        """The variable that is the address of the first element."""
        return self.buffer.data

    def scope(self) -> str:
        """The memory that it is in."""
        return self.buffer.scope

    def offset_of(self, indices: Sequence[object]) -> tuple[Expr, ...]:
        """How many elements an element stands behind the first one, in each physical dimension."""
        if not self.axis_separators:
            return (self.place_of(indices),)
        given, ends = self._indices(indices), (0, *self.axis_separators, len(self.shape))
        return tuple(_behind(given[a:b], compact_strides(self.shape[a:b])) for a, b in itertools.pairwise(ends))

    def place_of(self, indices: Sequence[object]) -> Expr:
        """How many elements an element stands behind the first one in memory of one dimension."""
        return _behind(self._indices(indices), self.strides)

    @property
    def dtype(self) -> DataType:
        return self.buffer.dtype

    @property
    def shape(self) -> tuple[Expr, ...]:
        return self.buffer.shape

    @property
    def strides(self) -> tuple[Expr, ...]:
        """The elements between neighbours in each dimension."""
        return self.declared_strides or compact_strides(self.shape)

    def _indices(self, given: Sequence[object]) -> tuple[Expr, ...]:
        if len(given) != len(self.shape):
            raise ExpressionError(f"'{self.name}' has {len(self.shape)} dimensions, got {len(given)} indices")
        return tuple(whole(i, f"an index of '{self.name}'") for i in given)

    def __getitem__(self, indices: object) -> Expr:
        given = indices if isinstance(indices, tuple) else (indices,)
        return E.BufferLoad(self.buffer, self._indices(given))

    def store(self, value: object, *indices: object) -> Stmt:
        """The statement that writes an element."""
        e = as_expr(value)
        if isinstance(e, (IntImm, E.FloatImm)) and e.dtype is not self.dtype:
            e = immediate(e.value, self.dtype)
        if e.dtype is not self.dtype:
            raise ExpressionTypeError(f"'{self.name}' has {self.dtype} elements, the value is {e.dtype}")
        return S.BufferStore(self.buffer, self._indices(indices), e, None)

    def ptr(self, *indices: object) -> Expr:
        """The address of an element, of the first one without indices."""
        if not indices:
            return E.Pointer(self.dtype, self.buffer.data, _ZERO)
        return E.Pointer(self.dtype, self.buffer.data, self.place_of(indices))

    def vload(self, begin: object, dtype: object = None) -> Expr:
        """The element at the indices `begin`. ExpressionTypeError for vectors and other types than the elements'."""
        if dtype is not None and data_type(dtype) is not self.dtype:
            raise ExpressionTypeError(
                f"'{self.name}' has {self.dtype} elements, {dtype} is asked for", "cast the value"
            )
        return self[tuple(begin) if isinstance(begin, (list, tuple)) else begin]

    def vstore(self, begin: object, value: object) -> Stmt:
        """The statement that writes the element at the indices `begin`."""
        return self.store(value, *(begin if isinstance(begin, (list, tuple)) else (begin,)))

    def access_ptr(
        self,
        access_mask: object = "rw",
        ptr_type: object = "handle",
        content_lanes: int = 1,
        offset: object = 0,
        extent: object = None,
    ) -> Expr:
        """The address `offset` elements behind the first one. What `access_mask` and `extent` say changes nothing: who gets an
        address may read and write."""
        if content_lanes != 1:
            raise ExpressionError(f"an address in '{self.name}' is one of single elements, not of {content_lanes}")
        return E.Pointer(self.dtype, self.buffer.data, whole(offset, f"an offset in '{self.name}'"))


def _behind(indices: Sequence[Expr], strides: Sequence[Expr]) -> Expr:
    where: Expr = _ZERO
    for index, stride in zip(indices, strides):
        where = binary("add", where, binary("mul", index, stride))
    return where


def separators_of(name: str, given: Sequence[Any] | None, rank: int) -> tuple[int, ...]:
    """The boundaries between physical dimensions. ExpressionError where they are no ascending places between dimensions."""
    listed = [getattr(n, "value", n) for n in given or ()]
    for n in listed:
        if isinstance(n, bool) or not isinstance(n, int):
            raise ExpressionTypeError(f"an axis separator of '{name}' is an int, got {type(n).__name__}")
    if listed != sorted(set(listed)) or not all(0 < n < rank for n in listed):
        raise ExpressionError(
            f"axis separators of '{name}': {listed} are no ascending places between its {rank} dimensions"
        )
    return tuple(listed)


def whole(given: object, what: str) -> Expr:
    """A whole number. ExpressionTypeError for others."""
    e = as_expr(given)
    if not kind_of(e).is_integer or kind_of(e).is_bool:
        raise ExpressionTypeError(f"{what} is a whole number, got {e} of {e.dtype}", "cast it to int32")
    return e


def aligned(name: str, shape: Sequence[Expr], alignments: Mapping[int, tuple[int, int]]) -> tuple[Expr, ...]:
    """The extents of memory with gaps for the strides that are asked for: by dimension what its stride is modulo what, as
    (factor, remainder). LowerError where the extents are not constant, or no stride is such."""
    if not alignments:
        return tuple(shape)
    sizes = [e.value for e in shape if isinstance(e, IntImm)]
    if len(sizes) < len(shape):
        raise LowerError(f"storage_align of '{name}': its memory has no constant size")
    for dim in sorted(alignments, reverse=True):
        factor, offset = alignments[dim]
        inner = math.prod(sizes[dim + 2 :])
        fitting = (n for n in range(sizes[dim + 1], sizes[dim + 1] + factor) if n * inner % factor == offset % factor)
        found = next(fitting, None)
        if found is None:
            raise LowerError(
                f"storage_align of '{name}': strides of dimension {dim} are multiples of {inner}, none of which is "
                f"{offset} modulo {factor}"
            )
        sizes[dim + 1] = found
    return tuple(IntImm(INT32, n) for n in sizes)


def compact_strides(shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """The strides of elements that lie one after another."""
    made: list[Expr] = []
    stride: Expr = _ONE
    for size in reversed(shape):
        made.append(stride)
        stride = binary("mul", stride, size)
    return tuple(reversed(made))


def declared(name: str, shape: tuple[Expr, ...], kind: DataType) -> Buffer:
    """A buffer that stands for a tensor in statements."""
    return Buffer(Var(name, pointer_type(kind, "global")), kind, shape or (_ONE,))


def decl_buffer(
    shape: object,
    dtype: object = None,
    name: str = "buffer",
    data: object = None,
    strides: Any = None,
    elem_offset: object = None,
    scope: str = "",
    data_alignment: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[object] | None = None,
) -> View:
    """A buffer of a shape and a type (float32 unless it is said), to be bound to a tensor (`binds`, `in_buffers`).

    `strides`: numbers, or variables for what they are at the place that it is bound to. `data_alignment` and `offset_factor` promise
    what nothing relies on. ExpressionError for what a buffer cannot have here: storage of its own (`data`), an offset, a memory
    (that of the stage it is bound to counts), dimensions that stretch.
    """
    refused = {
        "data": data is not None,
        "elem_offset": elem_offset is not None and not _is_number(elem_offset, 0),
        "scope": scope not in ("", "global") and not vendor.names_in_use,
        "offset_factor": isinstance(offset_factor, bool) or not isinstance(offset_factor, int) or offset_factor < 0,
        "buffer_type": buffer_type not in ("", "default"),
    }
    for argument in (a for a, wrong in refused.items() if wrong):
        raise ExpressionError(f"the buffer '{name}' cannot have the argument '{argument}'", "leave it out")
    if isinstance(data_alignment, bool) or not isinstance(data_alignment, int):
        raise ExpressionTypeError(f"data_alignment of '{name}' is a number of bytes, got {data_alignment!r}")
    sizes = shape_of(shape)
    steps = tuple(map(as_expr, strides)) if strides is not None else ()
    if len(steps) not in (0, len(sizes)) or any(not isinstance(e, (IntImm, Var)) for e in steps):
        raise ExpressionError(f"'{name}' has {len(sizes)} dimensions, its strides are as many numbers or variables")
    separators = separators_of(name, axis_separators, len(sizes))
    if steps and separators:
        raise ExpressionError(f"'{name}' has strides or axis separators, not both", "leave one of them out")
    made = declared(name, sizes, FLOAT32 if dtype is None else data_type(dtype))
    return View(made.replace(axis_separators=separators), steps)


def _is_number(given: object, number: int) -> bool:
    e = as_expr(given)
    return isinstance(e, IntImm) and e.value == number


def check_bound(what: str, view: object, tensor: Tensor, strided: bool = False) -> View:
    """The buffer that stands for a tensor. ExpressionError where it has another type or shape, or strides of its own
    unless it is `strided`."""
    if not isinstance(view, View):
        raise ExpressionTypeError(
            f"{what}: a buffer (te.decl_buffer) stands for '{tensor.name}', got {type(view).__name__}"
        )
    wanted = tensor.shape or (_ONE,)
    if view.dtype is not tensor.dtype or list(map(number_of, view.shape)) != list(map(number_of, wanted)):
        sides = [f"({', '.join(str(e) for e in x.shape)}) of {x.dtype}" for x in (view, tensor)]
        raise ExpressionError(
            f"{what}: the buffer '{view.name}' is {sides[0]}, '{tensor.name}' is {sides[1]}",
            f"declare it with te.decl_buffer({tensor.name}.shape, {tensor.name}.dtype)",
        )
    if view.declared_strides and not strided:
        raise ExpressionError(f"{what}: the buffer '{view.name}' has strides, tensors lie one element after another")
    return view
