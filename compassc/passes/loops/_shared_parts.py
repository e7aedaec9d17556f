"""Parts of statements as variables before them: what ShareVectors and ShareLoads have in common."""

from __future__ import annotations

from collections import Counter

from compassc.analysis.structure import Interner, is_pure
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.exprs import Expr, Var
from compassc.ir.stmts import Body, PrimFunc, Stmt
from compassc.ir.visit import StatementRewriter

_PLAIN = (S.Let, S.Assign, S.BufferStore)
_TRIVIAL = (Var, E.BufferLoad, E.Ramp, E.VectorLiteral, E.IntImm, E.FloatImm, E.TailMask)


def with_parts(f: PrimFunc, loads: bool) -> PrimFunc:
    """The function with variables for the vectors that its statements need more than once, or (`loads`) that they load to
    convert them to a wider type."""
    return _Statements(loads).function(f)


class _Statements(StatementRewriter):
    def __init__(self, loads: bool) -> None:
        super().__init__()
        self.loads = loads

    def body(self, body: Body) -> Body:
        made: list[Stmt] = []
        for s in body:
            made += _named(s, self.loads) if isinstance(s, _PLAIN) else [s.map(self.expr, self.body)]
        same = len(made) == len(body) and all(a is b for a, b in zip(made, body))
        return body if same else tuple(made)


def _named(s: Stmt, loads: bool) -> list[Stmt]:
    """A statement, after the variables for what it has more than once."""
    if not s.flags & E.F_VECTOR or not all(is_pure(e) for e in s.exprs()):
        return [s]
    parts = _Parts(s, loads)
    for e in s.exprs():
        parts.count(e)
    if parts.uses.total() == len(parts.uses):
        return [s]
    new = s.map(parts.put, lambda body: body)
    return [*parts.lets, new]


class _Parts:
    """The parts of one statement by structure: how often they are needed, and the variables for them."""

    def __init__(self, s: Stmt, loads: bool) -> None:
        self.span, self.loads = s.span, loads
        self.interner = Interner()
        self.uses: Counter[int] = Counter()
        self.names: dict[int, Var] = {}
        self.lets: list[S.Let] = []

    def _is_named(self, e: Expr) -> bool:
        return is_part(e) or (self.loads and isinstance(e, E.BufferLoad) and e.dtype.is_vector)

    def count(self, e: Expr) -> None:
        if not e.flags & E.F_VECTOR:
            return
        if is_part(e):
            key = self.interner.key(e)
            self.uses[key] += 1
            if self.uses[key] > 1:
                return
        for child in _evaluated(e):
            self.count(child)
            if _widens(e) and self._is_named(child):
                self.uses[self.interner.key(child)] += 1 + isinstance(child, E.BufferLoad)

    def put(self, e: Expr) -> Expr:
        """An expression of the variables, which are defined where they are needed first."""
        if not e.flags & E.F_VECTOR:
            return e
        key = self.interner.key(e) if self._is_named(e) else None
        if key in self.names:
            return self.names[key]
        inner = {id(child) for child in _evaluated(e)}
        made = e.map(lambda child: self.put(child) if id(child) in inner else child) if inner else e
        if key is None or self.uses[key] < 2:
            return made
        var = self.names[key] = Var("part", e.dtype)
        self.lets.append(S.Let(var, made, span=self.span))
        return var


def is_part(e: Expr) -> bool:
    """Whether an expression is a vector of numbers that takes work."""
    if not e.dtype.is_vector or e.data_type.is_bool or isinstance(e, _TRIVIAL):
        return False
    return not (isinstance(e, E.Broadcast) and isinstance(e.value, _TRIVIAL))


def _evaluated(e: Expr) -> tuple[Expr, ...]:
    """The operands that are evaluated whenever an expression is."""
    if isinstance(e, E.Select) and e.condition.dtype.lanes == 1:
        return (e.condition,)
    if isinstance(e, E.Binary) and e.op in E.LOGICAL and e.dtype.lanes == 1:
        return (e.a,)
    return tuple(e.children())


def _widens(e: Expr) -> bool:
    """Whether an expression is a vector of wider elements than that which it converts."""
    return isinstance(e, E.Call) and e.op == "cast" and e.dtype.bits > e.args[0].dtype.bits
