"""Turn accesses of N-dimensional buffers into accesses of one dimension.

Before: buffers may have any number of constant or run-time extents.
After: every access has one index, row-major over the shape, and its buffer has no shape; there is no DeclBuffer; an
allocation has one extent.
"""

from __future__ import annotations

from ..analysis.buffers import as_type, position
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.accesses import Accesses, Element
from ..ir.dtypes import INT32
from ..ir.exprs import Binary, Buffer, IntImm
from ..ir.stmts import IRModule
from ..ir.visit import Rewritten, rewrites

NAME = "FlattenBuffer"


def run(module: IRModule) -> IRModule:
    return module.map_functions(lambda f: _Flatten().function(f))


class _Flatten(Accesses):
    interest = E.F_LOAD

    def element(self, buffer: Buffer, indices: tuple[E.Expr, ...]) -> Element | None:
        return (_flat(buffer), (position(buffer.shape, indices),)) if buffer.shape else None

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
            count = Binary("mul", count, as_type(extent, count))
    return Buffer(buffer.data, buffer.dtype, (count,))
