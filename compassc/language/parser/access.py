"""Subscripts on pointers and buffers: element and slice loads and stores."""

from __future__ import annotations

from typing import Any

from ...analysis.arith import Arith
from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import INT32, VOID, DataType
from ...ops.core import convert
from ...ops.typing import is_literal
from .errors import language_error
from .operators import convert_to
from .values import ONE, BufferValue, PointerValue, Value, add_offset, index_expr, kind_name, literal_expr


class Subscript:
    """A resolved subscript: a scalar element of a buffer, or a run of `lanes` elements at a pointer."""

    __slots__ = ("buffer", "dtype", "indices", "pointer", "stride")

    def __init__(self, dtype: DataType) -> None:
        self.buffer: E.Buffer | None = None
        self.indices: tuple[E.Expr, ...] = ()
        self.pointer: E.Pointer | None = None
        self.dtype = dtype
        self.stride: E.Expr = ONE

    def load(self) -> Value:
        if self.buffer is not None:
            return Value(E.BufferLoad(self.buffer, self.indices))
        assert self.pointer is not None
        return Value(E.Call("vload", (self.pointer, self.stride), self.dtype))

    def store(self, value: object) -> S.Stmt:
        """The statement that stores a value, converted to the element type."""
        e = stored_value(value, self.dtype)
        if self.buffer is not None:
            return S.BufferStore(self.buffer, self.indices, e, None)
        assert self.pointer is not None
        return S.Evaluate(E.Call("vstore", (e, self.pointer, self.stride), VOID))


def stored_value(value: object, to: DataType) -> E.Expr:
    """A value converted to a stored type: scalars by C rules (broadcast over a slice), vectors as S.cast."""
    if not (is_literal(value) or isinstance(value, Value)):
        raise language_error(
            "store-value", f"{kind_name(value)} cannot be stored into an element of type {to}", "store a number"
        )
    if is_literal(value):
        return convert(value, to) if to.is_floating or type(value) is not float else convert(literal_expr(value), to)
    if value.dtype.is_vector and value.dtype.lanes != to.lanes:
        raise language_error(
            "lanes-mismatch",
            f"the value is {value.dtype}, the destination {to}: the lanes differ",
            "match the slice to the vector"
            if to.is_vector
            else "take one lane, VALUE[0], or store the vector with S.vstore",
        )
    return convert_to(value, to)


def _pointer_place(p: PointerValue, index: object) -> Subscript:
    if isinstance(index, tuple):
        raise language_error("pointer-index", "a pointer takes one index", "use S.match_buffer for several dimensions")
    if p.elem is VOID:
        raise language_error("void-pointer", "a void pointer cannot be accessed", "give it a type with as_ptr")
    if p.blocked:
        raise language_error("pointer-unbound", f"cannot subscript {p.blocked}", "bind it to a name first")
    if isinstance(index, slice):
        if index.stop is None:
            raise language_error("slice-stop", "a slice of a pointer needs a stop", "write p[a:b]")
        return _run(p.elem, p.base, p.offset, index, None)
    return _element(p.elem, p.base, add_offset(p.offset, index_expr(index)))


def _element(elem: DataType, base: E.Expr, offset: E.Expr) -> Subscript:
    place = Subscript(elem)
    if elem.is_vector:
        place.pointer = E.Pointer(elem, base, offset)
    else:
        if type(base) is not E.Var:
            raise language_error("pointer-unbound", "this pointer cannot be subscripted yet", "bind it to a name first")
        place.buffer, place.indices = E.Buffer(base, elem), (offset,)
    return place


def slice_lanes(start: E.Expr, stop: E.Expr, step: E.Expr) -> int:
    """The constant lane count of a slice."""
    length = Arith().linear(E.Binary("sub", stop, start))
    if length.terms or type(step) is not E.IntImm or step.value < 1:
        raise language_error(
            "slice-length", "the length of a slice must be known when the kernel is compiled", "write p[i : i + 8]"
        )
    lanes = -(-length.const // step.value)
    if lanes < 1:
        raise language_error(
            "slice-length", f"the slice has {lanes} elements", "the stop must lie behind the start: p[i : i + 8]"
        )
    return lanes


def _run(elem: DataType, base: E.Expr, offset: E.Expr, index: slice, size: object) -> Subscript:
    """A slice as a vector access; a single element as a scalar one. `size` is the default stop."""
    start = convert(index_expr(0 if index.start is None else index.start), INT32)
    stop = convert(index_expr(size if index.stop is None else index.stop), INT32)
    step = convert(index_expr(1 if index.step is None else index.step), INT32)
    lanes = slice_lanes(start, stop, step)
    offset = add_offset(offset, start)
    if lanes == 1:
        return _element(elem, base, offset)
    place = Subscript(elem.with_lanes(elem.lanes * lanes))
    place.pointer, place.stride = E.Pointer(elem, base, offset), step
    return place


def _buffer_place(b: BufferValue, index: object) -> Subscript:
    items = index if isinstance(index, tuple) else (index,)
    if len(items) != len(b.dims):
        raise language_error(
            "index-count",
            f"buffer {b.name!r} has {len(b.dims)} dimensions, but {len(items)} "
            + ("index is given" if len(items) == 1 else "indices are given"),
            "give one index per dimension",
        )
    for item in items[:-1]:
        if isinstance(item, slice):
            raise language_error(
                "slice-position",
                "only the last index of a buffer may be a slice",
                "loop over the other dimensions, or load with a stride: S.vload(buf.addr_of((0, j)), stride=n)",
            )
    last = items[-1]
    if not isinstance(last, slice):
        indices = tuple(index_expr(i) for i in items)
        if b.dtype.is_vector or len(b.dims) == 1:
            return _element(b.dtype, b.buffer.data, b.flat_index(indices))
        place = Subscript(b.dtype)
        place.buffer, place.indices = b.buffer, indices
        return place
    head = (*(index_expr(i) for i in items[:-1]), E.IntImm(INT32, 0))
    return _run(b.dtype, b.buffer.data, b.flat_index(head), last, b.dims[-1])


def resolve(target: Any, index: object) -> Subscript:
    """The place `target[index]` names."""
    if isinstance(target, PointerValue):
        return _pointer_place(target, index)
    return _buffer_place(target, index)


def load(target: object, index: object) -> Value:
    """`target[index]` as a value."""
    return resolve(target, index).load()
