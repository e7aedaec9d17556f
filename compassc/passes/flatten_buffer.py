"""Turn accesses of N-dimensional buffers into accesses of one dimension.

Before: buffers may have any number of constant or run-time extents.
After: every access has one index, row-major over the shape, and its buffer has no shape; there is no DeclBuffer; an
allocation has one extent.
"""

from __future__ import annotations

from ..analysis.structure import Interner
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import INT32
from ..ir.exprs import Binary, Buffer, Expr, IntImm
from ..ir.stmts import IRModule
from ..ir.visit import Rewriter, Rewritten, rewrites

NAME = "FlattenBuffer"


def run(module: IRModule) -> IRModule:
    return module.map_functions(lambda f: _Flatten().function(f))


def position(shape: tuple[Expr, ...], indices: tuple[Expr, ...]) -> Expr:
    """Row-major position of an element, in 32 bits; a Ramp in the last index stays the outermost node."""
    *outer, last = indices
    if not outer:
        return last
    position = outer[0] if outer[0].dtype.bits == 32 else E.Cast(INT32, outer[0])
    for extent, index in zip(shape[1:-1], outer[1:]):
        position = _next(position, extent, index)
    if type(last) is E.Ramp:
        row = Binary("mul", position, _as(shape[-1], position))
        return E.Ramp(Binary("add", row, _as(last.base, row)), last.stride, last.lanes)
    return _next(position, shape[-1], last)


def _next(position: Expr, extent: Expr, index: Expr) -> Expr:
    """The position on one more axis; the quotient and the rest of a number by the extent are that number."""
    if type(position) is Binary and type(index) is Binary and _REST.get(position.op) == index.op:
        whole = _divided(position, extent, index)
        if whole is not None:
            return whole
    return Binary("add", Binary("mul", position, _as(extent, position)), _as(index, position))


_REST = {"floordiv": "floormod", "div": "mod"}


def _divided(quotient: Binary, extent: Expr, rest: Binary) -> Expr | None:
    """`x // n * n + x % n`, and `x // (n * m) * n + x // m % n`, without the division by n."""
    if not all(type(e) is IntImm for e in (quotient.b, extent, rest.b)) or rest.b.value != extent.value:  # type: ignore[attr-defined]
        return None
    same, by, count = Interner().same, quotient.b.value, extent.value  # type: ignore[attr-defined]
    if by == count and same(quotient.a, rest.a):
        return rest.a
    inner = rest.a
    if type(inner) is Binary and inner.op == quotient.op and type(inner.b) is IntImm:
        return inner if by == count * inner.b.value and same(quotient.a, inner.a) else None
    return None


def _as(e: Expr, like: Expr) -> Expr:
    """`e` in the type of `like`, for index arithmetic."""
    if e.dtype is like.dtype:
        return e
    return IntImm(like.data_type, e.value) if type(e) is IntImm else E.Cast(like.data_type, e)


class _Flatten(Rewriter):
    interest = E.F_LOAD

    @rewrites(E.Load)
    def rewrite_load(self, e: E.Load) -> E.Expr:
        e = self.default(e)
        if not e.buffer.shape:
            return e
        return E.Load(_flat(e.buffer), (position(e.buffer.shape, e.indices),), e.mask)

    @rewrites(S.Store)
    def rewrite_store(self, s: S.Store) -> Rewritten:
        s = self.default_stmt(s)
        if not s.buffer.shape:
            return s
        index = position(s.buffer.shape, s.indices)
        return S.Store(_flat(s.buffer), (index,), s.value, s.mask, span=s.span)

    @rewrites(S.DeclBuffer)
    def rewrite_decl_buffer(self, s: S.DeclBuffer) -> Rewritten:
        return None

    @rewrites(S.Alloc)
    def rewrite_alloc(self, s: S.Alloc) -> Rewritten:
        if len(s.buffer.shape) == 1:
            return s
        return S.Alloc(_one_extent(s.buffer), span=s.span)

    @rewrites(S.AllocConst)
    def rewrite_alloc_const(self, s: S.AllocConst) -> Rewritten:
        if len(s.buffer.shape) == 1:
            return s
        return S.AllocConst(_one_extent(s.buffer), s.data, span=s.span)


def _flat(buffer: Buffer) -> Buffer:
    return Buffer(buffer.data, buffer.dtype)


def _one_extent(buffer: Buffer) -> Buffer:
    first, *rest = buffer.shape
    count = first
    for extent in rest:
        if isinstance(extent, IntImm) and isinstance(count, IntImm):
            count = IntImm(INT32, count.value * extent.value)
        else:
            count = Binary("mul", count, _as(extent, count))
    return Buffer(buffer.data, buffer.dtype, (count,))
