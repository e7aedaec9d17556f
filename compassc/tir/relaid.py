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

    @rewrites(E.Load)
    def rewrite_load(self, e: E.Load) -> Expr:
        indices = tuple(map(self.expr, e.indices))
        if e.buffer.data is not self.data:
            return E.Load(e.buffer, indices, e.mask)
        return E.Load(view(self.new), self.place(indices), e.mask)

    @rewrites(S.Store)
    def rewrite_store(self, s: S.Store) -> Stmt:
        indices, value = tuple(map(self.expr, s.indices)), self.expr(s.value)
        if s.buffer.data is not self.data:
            return S.Store(s.buffer, indices, value, s.mask, span=s.span)
        return S.Store(view(self.new), self.place(indices), value, s.mask, span=s.span)

    @rewrites(E.Region)
    def rewrite_region(self, e: E.Region) -> Expr:
        if e.buffer.data is not self.data:
            return e
        return E.Region(view(self.new), tuple(number(0) for _ in self.new.shape), self.new.shape)
