"""A buffer of which the elements lie elsewhere, or are others: its declaration and its accesses follow."""

from __future__ import annotations

from collections.abc import Callable

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.accesses import Elsewhere, Place
from compassc.ir.exprs import Buffer, Expr, Var
from compassc.ir.stmts import Stmt
from compassc.ir.visit import rewrites
from compassc.tir.blocks import number, view


class Replaced(Elsewhere):
    """Puts `new` in the place of the buffer of `data`. `place`: where its elements are then, if not where they were; regions of
    blocks become the whole of it. `load` and `store` convert what is read and written."""

    def __init__(
        self,
        data: Var,
        new: Buffer,
        place: Place | None = None,
        load: Callable[[Expr], Expr] = lambda e: e,
        store: Callable[[Expr], Expr] = lambda e: e,
    ) -> None:
        super().__init__({data: (view(new), place or (lambda indices: indices))})
        self.data, self.new, self.whole = data, new, place is not None
        self.load, self.store = load, store

    def loaded(self, e: E.BufferLoad) -> Expr:
        return self.load(e)

    def stored(self, value: Expr) -> Expr:
        return self.store(value)

    def region(self, e: E.BufferRegion) -> Expr:
        if e.buffer.data is self.data and self.whole:
            return E.BufferRegion(view(self.new), tuple(number(0) for _ in self.new.shape), self.new.shape)
        return super().region(e)

    @rewrites(S.Alloc)
    def rewrite_alloc(self, s: S.Alloc) -> Stmt:
        return S.Alloc(self.new, span=s.span) if s.buffer.data is self.data else s

    @rewrites(S.DeclBuffer)
    def rewrite_declaration(self, s: S.DeclBuffer) -> Stmt:
        return S.DeclBuffer(self.new, span=s.span) if s.buffer.data is self.data else s
