"""Rewriting accesses of memory: elements of buffers as elements of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_

from . import exprs as E
from . import stmts as S
from .exprs import Buffer, Expr, Var
from .stmts import Stmt
from .visit import Rewriter, rewrites

Place = Callable[[tuple[Expr, ...]], tuple[Expr, ...]]
"""Old indices of an element -> the new ones."""
Element = tuple[Buffer, tuple[Expr, ...]]
"""A buffer, and the indices of an element of it."""


def always(indices: tuple[Expr, ...]) -> Place:
    """The same indices for all elements."""
    return lambda _: indices


class Accesses(Rewriter):
    """Loads, stores and regions of buffers as those of others. Subclasses say where elements are (`element`), and may change
    what is loaded and stored. `stores`: whether stores are at the new places, too."""

    stores = True

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Element | None:
        """Where the element of a buffer is; None for one that stays where it is."""
        raise NotImplementedError

    def loaded(self, e: E.BufferLoad) -> Expr:
        """The value of an element that is loaded from its new place."""
        return e

    def stored(self, value: Expr) -> Expr:
        """What the new place of an element holds of a value."""
        return value

    def region(self, e: E.BufferRegion) -> Expr:
        """A region of a buffer as one of another."""
        found = self.element(e.buffer, e.starts)
        return e if found is None else E.BufferRegion(*found, e.extents)

    @rewrites(E.BufferLoad)
    def rewrite_load(self, e: E.BufferLoad) -> Expr:
        indices = tuple(map(self.expr, e.indices))
        mask = None if e.mask is None else self.expr(e.mask)
        found = self.element(e.buffer, indices)
        if found is not None:
            return self.loaded(E.BufferLoad(*found, mask))
        same = mask is e.mask and all(map(is_, indices, e.indices))
        return e if same else E.BufferLoad(e.buffer, indices, mask)

    @rewrites(S.BufferStore)
    def rewrite_store(self, s: S.BufferStore) -> Stmt:
        indices, value = tuple(map(self.expr, s.indices)), self.expr(s.value)
        mask = None if s.mask is None else self.expr(s.mask)
        found = self.element(s.buffer, indices) if self.stores else None
        if found is not None:
            return S.BufferStore(*found, self.stored(value), mask, span=s.span)
        same = value is s.value and mask is s.mask and all(map(is_, indices, s.indices))
        return s if same else S.BufferStore(s.buffer, indices, value, mask, span=s.span)

    @rewrites(E.BufferRegion)
    def rewrite_region(self, e: E.BufferRegion) -> Expr:
        return self.region(e)


class Elsewhere(Accesses):
    """Buffers by their storage: each with the one that holds its elements, and with what becomes of indices. Addresses of the
    storage follow. `regions`: those follow, too."""

    def __init__(self, moves: Mapping[Var, tuple[Buffer, Place]], stores: bool = True, regions: bool = True) -> None:
        super().__init__()
        self.moves, self.stores, self.regions = moves, stores, regions

    def region(self, e: E.BufferRegion) -> Expr:
        return super().region(e) if self.regions else e

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Element | None:
        found = self.moves.get(buffer.data)
        return None if found is None else (found[0], found[1](indices))

    @rewrites(Var)
    def rewrite_address(self, e: Var) -> Expr:
        return self.moves[e][0].data if e in self.moves else e
