"""A buffer of which the elements lie elsewhere: its declaration and its accesses follow."""

from __future__ import annotations

from collections.abc import Callable

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.exprs import Buffer, Expr, Var
from compassc.ir.stmts import Stmt
from compassc.ir.visit import Rewriter, rewrites
from compassc.tir.blocks import number, view

Place = Callable[[tuple[Expr, ...]], tuple[Expr, ...]]
"""Old indices of an element -> the new ones."""


class Relaid(Rewriter):
    """Puts `new` in the place of the buffer of `data`; regions of blocks become the whole of it."""

    def __init__(self, data: Var, new: Buffer, place: Place) -> None:
        super().__init__()
        self.data, self.new, self.place = data, new, place

    @rewrites(S.Alloc)
    def rewrite_alloc(self, s: S.Alloc) -> Stmt:
        return S.Alloc(self.new, span=s.span) if s.buffer.data is self.data else s

    @rewrites(S.DeclBuffer)
    def rewrite_declaration(self, s: S.DeclBuffer) -> Stmt:
        return S.DeclBuffer(self.new, span=s.span) if s.buffer.data is self.data else s

    @rewrites(E.BufferLoad)
    def rewrite_load(self, e: E.BufferLoad) -> Expr:
        indices = tuple(map(self.expr, e.indices))
        if e.buffer.data is not self.data:
            return E.BufferLoad(e.buffer, indices, e.mask)
        return E.BufferLoad(view(self.new), self.place(indices), e.mask)

    @rewrites(S.BufferStore)
    def rewrite_store(self, s: S.BufferStore) -> Stmt:
        indices, value = tuple(map(self.expr, s.indices)), self.expr(s.value)
        if s.buffer.data is not self.data:
            return S.BufferStore(s.buffer, indices, value, s.mask, span=s.span)
        return S.BufferStore(view(self.new), self.place(indices), value, s.mask, span=s.span)

    @rewrites(E.BufferRegion)
    def rewrite_region(self, e: E.BufferRegion) -> Expr:
        if e.buffer.data is not self.data:
            return e
        return E.BufferRegion(view(self.new), tuple(number(0) for _ in self.new.shape), self.new.shape)
