"""Whether a store of several registers changes what its later parts still read."""

from __future__ import annotations

from typing import Any

from ..analysis.statements import is_const
from ..analysis.structure import Interner
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import PointerType
from ..ir.visit import walk_exprs, walk_stmts

_READS = ("vload", "__vload_gather", "vload_gather")
Roots = frozenset[Any]
ANY: Roots = frozenset((None,))
"""Roots of an address that can lie anywhere."""


class Hazards:
    """Which memory the addresses of a function lie in. Different parameters and allocations are different memory."""

    def __init__(self, f: S.PrimFunc) -> None:
        self.known: dict[E.Var, Roots] = {}
        self.interner = Interner()
        moved = [
            s for s in walk_stmts(f.body) if isinstance(s, (S.Let, S.Assign)) and isinstance(s.var.dtype, PointerType)
        ]
        changed = True
        while changed:
            changed = False
            for s in moved:
                roots = self.known.get(s.var, frozenset()) | self.roots(s.value)
                if roots != self.known.get(s.var):
                    self.known[s.var], changed = roots, True

    def roots(self, e: E.Expr) -> Roots:
        """The parameters and allocations that a pointer can point into."""
        if type(e) is E.Pointer:
            return self.roots(e.base)
        if type(e) is E.Var:
            return self.known.get(e) or frozenset((e,))
        if type(e) is E.AddressOf:
            return frozenset((e.var,))
        if type(e) is E.FuncCall:
            pointers = [a for a in e.args if isinstance(a.dtype, PointerType)]
            return frozenset().union(*map(self.roots, pointers)) or ANY
        return ANY

    def reads(self, e: E.Expr, target: Roots, same: E.Expr | None) -> bool:
        """Whether evaluating `e` reads memory of `target`, other than exactly at the address `same`."""
        for x in walk_exprs(e, E.F_LOAD | E.F_CALL):
            if type(x) is E.BufferLoad:
                found = self.roots(x.buffer.data)
            elif type(x) is E.Call and x.op in _READS:
                if (
                    same is not None
                    and x.op == "vload"
                    and self.interner.same(x.args[0], same)
                    and is_const(x.args[1], 1)
                ):
                    continue
                found = self.roots(x.args[0])
            else:
                continue
            if found & target or None in found or None in target:
                return True
        return False
