"""Turn vector-typed language nodes into calls of vector operations.

Before: vectors may be loaded and stored by Ramp subscripts, combined by operators, chosen by Select.
After: every vector load, store and operation is a Call; Load and Store are scalar only. Exceptions that C itself has on
registers stay as they are: `%`, `~`, splats, and a choice by a scalar condition. Gather and scatter take byte offsets.
"""

from __future__ import annotations

from functools import cache

from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import VOID, Type, dtype
from ..ir.visit import Rewriter, Rewritten, for_each_function, rewrites
from ..ops import core
from ._vectors import cast, int32

NAME = "LowerVectorOperators"

_SWAPPED = {"gt": "lt", "ge": "le"}
_OFFSET = dtype("uint16")


@cache
def _operations() -> dict[str, str]:
    """Operator -> the operation that it is on vectors."""
    return {op.operator: op.name for op in core.load().values() if op.operator}


def _plain(name: str, args: tuple[E.Expr, ...], kind: Type) -> E.Call:
    """A call with the default options."""
    return E.Call(name, args, kind, attrs=_defaults(name))


@cache
def _defaults(name: str) -> tuple[tuple[str, object], ...]:
    op = core.get(name)
    return tuple(sorted((o, op.signature.parameters[o].default) for o in op.options if o != "out_sign"))


class _Lower(Rewriter):
    interest = E.F_VECTOR
    skips_statements = True

    @rewrites(E.BufferLoad)
    def rewrite_load(self, e: E.BufferLoad) -> E.Expr:
        if not e.dtype.is_vector:
            return e.map(self.expr)
        mask = None if e.mask is None else self.expr(e.mask)
        name, address = self.address(e.buffer, e.indices[-1])
        return E.Call("__vload_gather" if name == "gather" else "vload", address, e.dtype, mask)

    @rewrites(S.BufferStore)
    def rewrite_store(self, s: S.BufferStore) -> Rewritten:
        if not s.value.dtype.is_vector:
            return s.map(self.expr, self.body)
        value = self.expr(s.value)
        mask = None if s.mask is None else self.expr(s.mask)
        name, address = self.address(s.buffer, s.indices[-1])
        name = "__vstore_scatter" if name == "gather" else "vstore"
        return S.Evaluate(E.Call(name, (value, *address), VOID, mask), span=s.span)

    def address(self, buffer: E.Buffer, index: E.Expr) -> tuple[str, tuple[E.Expr, ...]]:
        """Pointer and stride of a scalar or ramp subscript; pointer and byte offsets ("gather") of any other vector."""
        if type(index) is E.Ramp:
            return "ramp", (E.Pointer(buffer.dtype, buffer.data, self.expr(index.base)), self.expr(index.stride))
        index = self.expr(index)
        if index.dtype.is_vector:
            start = E.Pointer(buffer.dtype, buffer.data, int32(0))
            return "gather", (start, byte_offsets(index, buffer.dtype.bytes))
        return "ramp", (E.Pointer(buffer.dtype, buffer.data, index), int32(1))

    @rewrites(E.Binary)
    def rewrite_binary(self, e: E.Binary) -> E.Expr:
        if e.op in _SWAPPED and e.a.dtype.is_vector:
            e = E.Binary(_SWAPPED[e.op], e.b, e.a)
        e = e.map(self.expr)
        if not e.dtype.is_vector:
            return e
        if e.op == "mod":
            return e
        name = _operations().get(e.op)
        if name is None:
            raise CompassError(f"operator {e.op!r} has no vector form", code="vector-operator")
        return _plain(name, (e.a, e.b), e.dtype)

    @rewrites(E.Cast)
    def rewrite_cast(self, e: E.Cast) -> E.Expr:
        e = e.map(self.expr)
        return cast((e.value,), e.dtype, saturate=None) if e.dtype.is_vector else e

    @rewrites(E.Broadcast)
    def rewrite_broadcast(self, e: E.Broadcast) -> E.Expr:
        value = self.expr(e.value)
        if e.dtype.is_bool and type(value) is E.IntImm:
            return E.ConstMask((1 << e.lanes) - 1 if value.value else 0, e.lanes)
        return e if value is e.value else E.Broadcast(value, e.lanes)

    @rewrites(E.Select)
    def rewrite_select(self, e: E.Select) -> E.Expr:
        e = e.map(self.expr)
        if not e.condition.dtype.is_vector:
            return e
        mask = None if type(e.condition) is E.ConstMask and e.condition.all_true else e.condition
        return E.Call("vsel", (e.true_value, e.false_value), e.dtype, mask)

    @rewrites(E.Ramp)
    def rewrite_ramp(self, e: E.Ramp) -> E.Expr:
        """A ramp as a value; as an index, `address` consumes it."""
        e = e.map(self.expr)
        kind = e.dtype.element_of
        step = e.stride.value if type(e.stride) is E.IntImm else 1
        steps: E.Expr = E.VectorLiteral(e.dtype, tuple([E.IntImm(kind, i * step) for i in range(e.lanes)]))
        if type(e.stride) is not E.IntImm:
            steps = E.Call("vmul", (steps, E.Broadcast(e.stride, e.lanes)), e.dtype)
        return _plain("vadd", (E.Broadcast(e.base, e.lanes), steps), e.dtype)

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        e = e.map(self.expr)
        if type(e.mask) is E.ConstMask and e.mask.all_true:  # it was a broadcast, which is a constant now
            e = e.replace(mask=None)
        if e.op == "vload_gather":
            pointer, indices = e.args
            args = (pointer, byte_offsets(indices, e.dtype.bytes))
            return E.Call("__vload_gather", args, e.dtype, e.mask)
        if e.op == "vstore_scatter":
            value, pointer, indices = e.args
            scattered = (value, pointer, byte_offsets(indices, value.dtype.bytes))
            return E.Call("__vstore_scatter", scattered, VOID, e.mask)
        return e


def byte_offsets(indices: E.Expr, itemsize: int) -> E.Expr:
    """Element indices as 16-bit byte offsets, which is what the gather unit takes."""
    kind = indices.dtype
    if kind.bits != 16:
        kind = _OFFSET.with_lanes(kind.lanes)
        indices = cast((indices,), kind)
    shift = E.Broadcast(E.IntImm(_OFFSET, itemsize.bit_length() - 1), kind.lanes)
    return _plain("vsl", (indices, shift), kind)


run = for_each_function(lambda f: _Lower().function(f))
