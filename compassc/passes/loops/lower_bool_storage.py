"""Keep bools in memory as bytes, 1 or 0, for there is no memory of bools in the dialect of C.

Before: any module. After: no array of the entry is one of bools.
An element is compared with 0 where it is read, so that vectors of them are masks. Where an element is joined with others
by `and` or `or`, the bytes are (`min`, `max`), which reductions in lanes know.
"""

from __future__ import annotations

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import BOOL, UINT8, pointer_type
from compassc.ir.exprs import Binary, Buffer, Expr, IntImm, Var
from compassc.ir.stmts import IRModule, PrimFunc
from compassc.ir.visit import Rewriter, Rewritten, rewrites, walk_stmts
from compassc.passes.loops._functions import on_entry

NAME = "LowerBoolStorage"

_OF_BYTES = {"or": "max", "and": "min"}
_ZERO = IntImm(UINT8, 0)


def run(module: IRModule) -> IRModule:
    return on_entry(module, _function)


def _function(f: PrimFunc) -> PrimFunc:
    """The function whose arrays of bools are of bytes. Parameters stay pointers to bools: that is what is given to it."""
    declared = [s.buffer for s in walk_stmts(f.body) if isinstance(s, (S.Alloc, S.DeclBuffer))]
    if all(b.dtype is not BOOL for b in declared):
        return f
    return _Bytes().function(f)


class _Bytes(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.renamed: dict[Var, Var] = {}
        """By the storage of an array of bools that of its bytes."""

    def _buffer(self, b: Buffer) -> Buffer:
        if b.dtype is not BOOL:
            return b
        return Buffer(self.renamed.get(b.data, b.data), UINT8, tuple(map(self.expr, b.shape)))

    @rewrites(S.Alloc)
    def rewrite_alloc(self, s: S.Alloc) -> Rewritten:
        if s.buffer.dtype is BOOL:
            data = s.buffer.data
            self.renamed[data] = Var(data.name, pointer_type(UINT8, s.buffer.scope))
        return S.Alloc(self._buffer(s.buffer), span=s.span)

    @rewrites(S.DeclBuffer)
    def rewrite_decl(self, s: S.DeclBuffer) -> Rewritten:
        return S.DeclBuffer(self._buffer(s.buffer), span=s.span)

    @rewrites(S.BufferStore)
    def rewrite_store(self, s: S.BufferStore) -> Rewritten:
        mapped = self.default_stmt(s)
        if s.buffer.dtype is not BOOL:
            return mapped
        assert isinstance(mapped, S.BufferStore)
        buffer = self._buffer(s.buffer)
        value = self._joined(s, mapped.value)
        if value is None:
            value = _byte(mapped.value)
        return S.BufferStore(buffer, mapped.indices, value, mapped.mask, span=s.span)

    def _joined(self, s: S.BufferStore, made: Expr) -> Expr | None:
        """The byte of an element that is joined with itself; None where it is not."""
        value = s.value
        if not isinstance(value, Binary) or value.op not in _OF_BYTES or not isinstance(made, Binary):
            return None
        if not any(isinstance(e, E.BufferLoad) and e.buffer.data is s.buffer.data for e in (value.a, value.b)):
            return None
        return Binary(_OF_BYTES[value.op], _byte(made.a), _byte(made.b))

    @rewrites(E.BufferLoad)
    def rewrite_load(self, e: E.BufferLoad) -> Expr:
        indices = tuple(map(self.expr, e.indices))
        mask = None if e.mask is None else self.expr(e.mask)
        if e.buffer.dtype is not BOOL:
            return E.BufferLoad(e.buffer, indices, mask)
        return Binary("ne", E.BufferLoad(self._buffer(e.buffer), indices, mask), _ZERO)

    @rewrites(E.Pointer)
    def rewrite_pointer(self, e: E.Pointer) -> Expr:
        base = self.expr(e.base)
        return E.Pointer(UINT8 if e.elem is BOOL else e.elem, base, self.expr(e.offset))

    @rewrites(Var)
    def rewrite_var(self, e: Var) -> Expr:
        return self.renamed.get(e, e)


def _byte(e: Expr) -> Expr:
    """The byte of a bool: that in memory where it was read from there."""
    if isinstance(e, IntImm):
        return IntImm(UINT8, e.value)
    if isinstance(e, E.Select):
        return E.Select(e.condition, _byte(e.true_value), _byte(e.false_value))
    if isinstance(e, Binary) and e.op == "ne" and e.b is _ZERO and isinstance(e.a, E.BufferLoad):
        return e.a
    return E.Cast(UINT8, e)
