"""Multiply halves whose products are added in float32 without converting them.

Before: any module, of which ReuseLoads does not know yet. After: a vector of float32 of the entry to which only products of
halves are added (`fma` of converted ones) is two, of its even and its odd lanes, to which `vfmae` and `vfmao` add: the same
bits, for products of halves are exact in float32. Where the vector is read it is the two interleaved.
"""

from __future__ import annotations

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import FLOAT32, VECTOR_BITS, dtype
from compassc.ir.exprs import Broadcast, Expr, Var
from compassc.ir.stmts import IRModule, PrimFunc
from compassc.ir.visit import Rewriter, Rewritten, rewrites, walk_stmts
from compassc.passes.loops._functions import on_entry

NAME = "CombineHalfProducts"
_HALVES = dtype("float16").with_lanes(VECTOR_BITS // 16)
_SUMS, _PART = FLOAT32.with_lanes(_HALVES.lanes), FLOAT32.with_lanes(_HALVES.lanes // 2)


def run(module: IRModule) -> IRModule:
    return on_entry(module, _combined)


def _combined(f: PrimFunc) -> PrimFunc:
    """The function with its sums of products of halves in two vectors each."""
    sums: dict[Var, tuple[Var, Var]] = {}
    refused: set[Var] = set()
    for s in walk_stmts(f.body):
        if isinstance(s, S.Let) and s.var.dtype is _SUMS and isinstance(s.value, Broadcast):
            sums[s.var] = (Var(f"{s.var.name}_even", _PART), Var(f"{s.var.name}_odd", _PART))
        elif isinstance(s, (S.Assign, S.SetElement)) and (isinstance(s, S.SetElement) or _factors(s) is None):
            refused.add(s.var)
    added = {s.var for s in walk_stmts(f.body) if isinstance(s, S.Assign)}
    chosen = {v: parts for v, parts in sums.items() if v in added and v not in refused}
    return _Apart(chosen).function(f) if chosen else f


def _factors(s: S.Assign) -> tuple[Expr, Expr] | None:
    """The vectors of halves whose products a statement adds to its variable."""
    e = s.value
    if not isinstance(e, E.Call) or e.op != "fma" or e.mask is not None or e.args[0] is not s.var:
        return None
    x, y = _halves(e.args[1]), _halves(e.args[2])
    return (x, y) if x is not None and y is not None and x.dtype is y.dtype else None


def _halves(e: Expr) -> Expr | None:
    """The vector of halves that a vector of float32 was converted from."""
    found: Expr | None = None
    if isinstance(e, E.Call) and e.op == "cast" and len(e.args) == 1:
        found = e.args[0]
    elif isinstance(e, Broadcast) and isinstance(e.value, E.Cast) and e.value.value.dtype.is_scalar:
        found = Broadcast(e.value.value, e.dtype.lanes)
    return found if found is not None and found.data_type is _HALVES else None


class _Apart(Rewriter):
    def __init__(self, chosen: dict[Var, tuple[Var, Var]]) -> None:
        super().__init__()
        self.chosen = chosen

    @rewrites(S.Let)
    def rewrite_let(self, s: S.Let) -> Rewritten:
        if s.var not in self.chosen or not isinstance(s.value, Broadcast):
            return self.default_stmt(s)
        return tuple(S.Let(v, Broadcast(s.value.value, _PART.lanes), span=s.span) for v in self.chosen[s.var])

    @rewrites(S.Assign)
    def rewrite_assign(self, s: S.Assign) -> Rewritten:
        factors = _factors(s) if s.var in self.chosen else None
        if factors is None:
            return self.default_stmt(s)
        x, y = map(self.expr, factors)
        parts = zip(("vfmae", "vfmao"), self.chosen[s.var])
        return tuple(S.Assign(v, E.Call(name, (v, x, y), _PART), span=s.span) for name, v in parts)

    @rewrites(Var)
    def rewrite_var(self, e: Var) -> Expr:
        if e not in self.chosen:
            return e
        return E.Call("vzip", self.chosen[e], _SUMS, attrs=(("part", "all"),))
