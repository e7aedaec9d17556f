"""Add in float32 what halves give without bringing their lanes into order.

Before: any module, of which ReuseLoads does not know yet. After: a vector of float32 of the entry to which only what is
computed of halves is added, by products or more than once, is two, of its even and its odd lanes. Products of halves, and
halves as products with one, are added by `vfmae` and `vfmao`: the same bits, for these products are exact in float32. What
else is computed of them, lane by lane, is computed of their even and of their odd lanes, which are all that X2 converts.
Where the vector is read it is the two interleaved.
"""

from __future__ import annotations

from collections import Counter

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import FLOAT32, VECTOR_BITS, dtype
from compassc.ir.exprs import Broadcast, Expr, Var
from compassc.ir.stmts import Body, IRModule, PrimFunc
from compassc.ir.visit import Rewriter, Rewritten, rewrites, walk_stmts
from compassc.passes.loops._functions import on_entry

NAME = "CombineHalfProducts"
_HALVES = dtype("float16").with_lanes(VECTOR_BITS // 16)
_SUMS, _PART = FLOAT32.with_lanes(_HALVES.lanes), FLOAT32.with_lanes(_HALVES.lanes // 2)
_ONES = Broadcast(E.FloatImm(_HALVES.element_of, 1.0), _HALVES.lanes)
_PRODUCTS = {"even": "vfmae", "odd": "vfmao"}
"""What adds the products of halves in these lanes."""
_LANE_BY_LANE = frozenset("add sub mul div min max".split())


def run(module: IRModule) -> IRModule:
    return on_entry(module, _combined)


def _combined(f: PrimFunc) -> PrimFunc:
    """The function with its sums of what halves give in two vectors each."""
    sums: dict[Var, dict[str, Var]] = {}
    refused: set[Var] = set()
    for s in walk_stmts(f.body):
        if isinstance(s, S.Let) and s.var.dtype is _SUMS and isinstance(s.value, (Broadcast, E.BufferLoad)):
            sums[s.var] = {part: Var(f"{s.var.name}_{part}", _PART) for part in _PRODUCTS}
        elif isinstance(s, (S.Assign, S.SetElement)) and (
            isinstance(s, S.SetElement) or _added(s, s.var, "even") is None
        ):
            refused.add(s.var)
    worth = _repeated(f.body) | {s.var for s in walk_stmts(f.body) if isinstance(s, S.Assign) and _is_product(s.value)}
    chosen = {v: parts for v, parts in sums.items() if v in worth and v not in refused}
    return _Apart(chosen).function(f) if chosen else f


def _repeated(body: Body) -> set[Var]:
    """Variables that are assigned to several times, or in a loop that they are older than."""
    count = Counter(s.var for s in walk_stmts(body) if isinstance(s, S.Assign))
    found = {v for v, n in count.items() if n > 1}
    for loop in (s for s in walk_stmts(body) if isinstance(s, S.For)):
        own = {s.var for s in walk_stmts(loop.body) if isinstance(s, S.Let)}
        found |= {s.var for s in walk_stmts(loop.body) if isinstance(s, S.Assign)} - own
    return found


def _is_product(e: Expr) -> bool:
    return isinstance(e, E.Call) and e.op == "fma" and _halves(e.args[1]) is not None and _halves(e.args[2]) is not None


def _added(s: S.Assign, total: Var, part: str) -> Expr | None:
    """What the lanes of a part, which are in `total`, become by a statement that adds what halves give to its variable."""
    e = s.value
    if isinstance(e, E.Call) and e.op == "fma" and e.mask is None and e.args[0] is s.var:
        x, y = _halves(e.args[1]), _halves(e.args[2])
        if x is not None and y is not None and x.dtype is y.dtype:
            return E.Call(_PRODUCTS[part], (total, x, y), _PART)
        a, b = _lanes(e.args[1], part), _lanes(e.args[2], part)
        return E.Call("fma", (total, a, b), _PART) if a is not None and b is not None else None
    if not isinstance(e, E.Binary) or e.op != "add" or e.a is not s.var:
        return None
    alone = _halves(e.b)
    if alone is not None:
        return E.Call(_PRODUCTS[part], (total, alone, _ONES), _PART)
    value = _lanes(e.b, part)
    return E.Binary("add", total, value) if value is not None else None


def _first(e: Expr, part: str) -> Expr:
    """The even or the odd lanes of what a sum begins with."""
    if isinstance(e, Broadcast):
        return Broadcast(e.value, _PART.lanes)
    return E.Call("vconcat", (e,), _PART, attrs=(("part", part),))


def _lanes(e: Expr, part: str) -> Expr | None:
    """The even or the odd lanes of what is computed lane by lane of converted halves; None of anything else."""
    if isinstance(e, Broadcast):
        return Broadcast(e.value, _PART.lanes)
    if isinstance(e, E.Binary) and e.op in _LANE_BY_LANE:
        a, b = _lanes(e.a, part), _lanes(e.b, part)
        return E.Binary(e.op, a, b) if a is not None and b is not None else None
    halves = _halves(e)
    return E.Call("cast", (halves,), _PART, attrs=(("part", part), ("saturate", None))) if halves is not None else None


def _halves(e: Expr) -> Expr | None:
    """The vector of halves that a vector of float32 was converted from."""
    found: Expr | None = None
    if isinstance(e, E.Call) and e.op == "cast" and len(e.args) == 1:
        found = e.args[0]
    elif isinstance(e, Broadcast) and isinstance(e.value, E.Cast) and e.value.value.dtype.is_scalar:
        found = Broadcast(e.value.value, e.dtype.lanes)
    return found if found is not None and found.data_type is _HALVES else None


class _Apart(Rewriter):
    def __init__(self, chosen: dict[Var, dict[str, Var]]) -> None:
        super().__init__()
        self.chosen = chosen

    @rewrites(S.Let)
    def rewrite_let(self, s: S.Let) -> Rewritten:
        if s.var not in self.chosen:
            return self.default_stmt(s)
        return tuple(S.Let(v, _first(s.value, part), span=s.span) for part, v in self.chosen[s.var].items())

    @rewrites(S.Assign)
    def rewrite_assign(self, s: S.Assign) -> Rewritten:
        if s.var not in self.chosen:
            return self.default_stmt(s)
        made = [(v, _added(s, v, part)) for part, v in self.chosen[s.var].items()]
        return tuple(S.Assign(v, self.expr(value), span=s.span) for v, value in made if value is not None)

    @rewrites(Var)
    def rewrite_var(self, e: Var) -> Expr:
        if e not in self.chosen:
            return e
        return E.Call("vzip", tuple(self.chosen[e].values()), _SUMS, attrs=(("part", "all"),))
