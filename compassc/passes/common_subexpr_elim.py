"""Compute operator expressions that occur more than once in a variable `cse_var_N`.

Before: any module without `floordiv` and `floormod`.
After: an expression of arithmetic, comparisons, `and`, `or`, `not` and conversions over constants and unchanging
variables that is certain to be evaluated twice or more in a block is a variable, defined at the first place in the block
where its operands are known. Expressions with calls, loads, shifts, bit operations or conditionals are never moved. A
division by what may be 0 is not moved to where it might not have been reached. Numbers count per function, outer blocks
before inner ones and larger expressions first; larger ones are defined after the smaller ones they use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from math import inf

from compass_core.errors import Span

from ..analysis.statements import defined_vars, leaves, mutable_vars
from ..analysis.structure import Interner, may_divide_by_zero
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import DataType
from ..ir.exprs import Binary, Expr, Var
from ..ir.names import NamePool
from ..ir.printer import print_expr
from ..ir.stmts import Body, IRModule, PrimFunc, Stmt

NAME = "CommonSubexprElim"
_NOT_MOVED = frozenset("bitand bitor bitxor shl shr".split())
_MOVED = frozenset((Binary, E.Cast, E.Unary))
_CONSTANTS = frozenset((E.IntImm, E.FloatImm))
_SPREAD = frozenset((E.Broadcast, E.Ramp))


def run(module: IRModule) -> IRModule:
    return module.map_functions(_function)


def _function(f: PrimFunc) -> PrimFunc:
    body = _Eliminate(f).block(f.body, f.params)
    return f if body is f.body else f.replace(body=body)


class _Facts:
    """What expressions are made of, by structural number, for one function."""

    def __init__(self, mutable: AbstractSet[Var]) -> None:
        self.mutable = mutable
        self.interner = Interner()
        self.node: dict[int, Expr] = {}
        self.parts: dict[int, tuple[list[Var], list[int]]] = {}
        self._movable: dict[Expr, bool] = {}
        self._reported: dict[int, bool] = {}

    def movable(self, e: Expr) -> bool:
        """Whether an operator or a conversion may become a variable."""
        found = self._movable.get(e)
        if found is None:
            own = e.op not in _NOT_MOVED if type(e) is Binary else type(e) is not E.Unary or e.op == "not"
            found = own and all(map(self._inside, e.children()))
            self._movable[e] = found
        return found

    def _inside(self, e: Expr) -> bool:
        """Whether `e` may be part of a movable expression."""
        if type(e) is Var:
            return e not in self.mutable and isinstance(e.dtype, DataType)
        if type(e) in _SPREAD:
            return all(map(self._inside, e.children()))
        return type(e) in _CONSTANTS or (type(e) in _MOVED and self.movable(e))

    def key(self, e: Expr) -> int:
        """The number of a movable expression; its variables and movable parts are in `parts`."""
        key = self.interner.key(e)
        if key not in self.parts:
            self.node[key] = e
            found: tuple[list[Var], list[int]] = ([], [])
            self.parts[key] = found
            for i, child in enumerate(e.children()):
                self._part(child, found, i == 1 and type(e) is Binary and e.op in E.LOGICAL)
        return key

    def _part(self, e: Expr, found: tuple[list[Var], list[int]], conditional: bool) -> None:
        if type(e) is Var:
            found[0].append(e)
        elif type(e) in _SPREAD:
            for child in e.children():
                self._part(child, found, conditional)
        elif type(e) not in _CONSTANTS:
            key = self.key(e)
            if conditional and self.may_be_reported(key):
                found[0].extend(self._all_vars(key))
            else:
                found[1].append(key)

    def _all_vars(self, key: int) -> list[Var]:
        own, parts = self.parts[key]
        return [*own, *(v for part in parts for v in self._all_vars(part))]

    def may_be_reported(self, key: int) -> bool:
        """Whether a checked run could report the expression if it were evaluated where the program did not."""
        found = self._reported.get(key)
        if found is None:
            found = may_divide_by_zero(self.node[key]) or any(map(self.may_be_reported, self.parts[key][1]))
            self._reported[key] = found
        return found


class _Eliminate:
    def __init__(self, f: PrimFunc) -> None:
        self.facts = _Facts(mutable_vars(f))
        self.names = NamePool(["cse_var", *(v.name for v in (*f.params, *defined_vars(f.body)))])
        self.scope: set[Var] = set()
        self.active: dict[int, Var] = {}
        self.order: list[int] = []
        self.pending: dict[int, Var] = {}

    def block(self, body: Body, variables: tuple[Var, ...] = ()) -> Body:
        """A block in which `variables` are defined at its start, rewritten."""
        local: dict[Var, int] = {}
        for i, s in enumerate(body):
            if type(s) is S.Let:
                local[s.var] = i + 1
        self.scope.update(variables)
        chosen = _Choice(self, self._certain(body, False), local).by_position()
        known = len(self.order)
        out: list[Stmt] = []
        changed = False
        for i, this in enumerate((*body, None)):
            for key in self._named(chosen[i]) if i in chosen else ():
                out.append(self._define(key, this.span if this is not None else None))
                changed = True
            if this is not None:
                new = self._statement(this)
                changed |= new is not this
                out.append(new)
        while len(self.order) > known:
            del self.active[self.order.pop()]
        return tuple(out) if changed else body

    # -- which expressions a block evaluates

    def _certain(self, body: Body, conditional: bool) -> Counter[int]:
        """How often a block is certain to evaluate each outermost movable expression. After a statement that may leave
        the block, only those that a checked run cannot report."""
        found: Counter[int] = Counter()
        for s in body:
            for e in s.exprs() if s.flags & E.F_OPERATOR else ():
                self._collect(e, conditional, found)
            if type(s) is S.IfThenElse and s.else_case and s.then_case:
                then, orelse = self._certain(s.then_case, conditional), self._certain(s.else_case, conditional)
                for key in then.keys() & orelse.keys():
                    found[key] += then[key] + orelse[key]
            conditional = conditional or leaves(s)
        return found

    def _collect(self, e: Expr, conditional: bool, found: Counter[int]) -> None:
        if type(e) in _MOVED and self.facts.movable(e):
            key = self.facts.key(e)
            if key in self.active:
                return
            if not (conditional and self.facts.may_be_reported(key)):
                found[key] = found.get(key, 0) + 1
                return
        children = e.children()
        lazy = type(e) is E.Select or (type(e) is Binary and e.op in E.LOGICAL)
        for i, child in enumerate(children):
            if child.flags & E.F_OPERATOR:
                self._collect(child, conditional or (lazy and i > 0), found)

    # -- rewriting

    def _named(self, keys: Sequence[int]) -> list[int]:
        """Give the expressions of one place their variables, and return them in the order of definition."""
        for key in keys:
            self.pending[key] = Var(self.names.take("cse_var"), self.facts.node[key].dtype)
        return list(reversed(keys))

    def _define(self, key: int, span: Span | None) -> Stmt:
        value = self.facts.node[key].map(self._expr)
        var = self.pending.pop(key)
        self._activate(key, var)
        self.scope.add(var)
        return S.Let(var, value, span=span)

    def _activate(self, key: int, var: Var) -> None:
        """From here to the end of the block, the expression is `var`."""
        self.active[key] = var
        self.order.append(key)

    def _expr(self, e: Expr) -> Expr:
        if not e.flags & E.F_OPERATOR or not self.active:
            return e
        if type(e) in _MOVED and self.facts.movable(e):
            var = self.active.get(self.facts.key(e))
            if var is not None:
                return var
        return e.map(self._expr)

    def _statement(self, s: Stmt) -> Stmt:
        inner = (s.loop_var,) if type(s) is S.For else ()
        new = s.map(self._expr, lambda body: self.block(body, inner))
        if type(s) is S.Let:
            self.scope.add(s.var)
            if type(s.value) in _MOVED and s.var not in self.facts.mutable and self.facts.movable(s.value):
                key = self.facts.key(s.value)
                if key not in self.active:
                    self._activate(key, s.var)
        return new


class _Choice:
    """Which expressions of one block become variables, and where.

    An expression can be defined after the last definition of its operands in the block (position 0: at its start).
    Positions are decided in order, and larger expressions before smaller ones, so that a part counts once when the
    whole has become a variable, and as often as the whole occurs as long as it has not.
    """

    def __init__(self, pass_: _Eliminate, roots: Counter[int], local: dict[Var, int]) -> None:
        self.facts, self.active, self.scope = pass_.facts, pass_.active, pass_.scope
        self.roots, self.local = roots, local
        self.place: dict[int, tuple[float, int]] = {}
        self.parents: dict[int, list[int]] = {key: [] for key in roots}
        stack = list(roots)
        while stack:
            key = stack.pop()
            for part in self._parts(key):
                if part not in self.parents:
                    self.parents[part] = []
                    stack.append(part)
                self.parents[part].append(key)

    def _parts(self, key: int) -> list[int]:
        return [p for p in self.facts.parts[key][1] if p not in self.active]

    def _place(self, key: int) -> tuple[float, int]:
        """Position and size (number of nodes) of an expression; position inf when its operands are not known here."""
        found = self.place.get(key)
        if found is None:
            own, parts = self.facts.parts[key]
            position: float = max([self._position(v) for v in own], default=0)
            size = 1 + len(own)
            for part in parts:
                at, nodes = (0, 1) if part in self.active else self._place(part)
                position, size = max(position, at), size + nodes
            found = self.place[key] = (position, size)
        return found

    def _position(self, var: Var) -> float:
        return self.local.get(var, 0 if var in self.scope else inf)

    def _repeated(self) -> set[int]:
        """The expressions that may occur twice or more: those with several places, and all that is in these. Others, which are most,
        occur once."""
        stack = [key for key, above in self.parents.items() if self.roots.get(key, 0) + len(above) > 1]
        found = set(stack)
        while stack:
            for part in self._parts(stack.pop()):
                if part not in found:
                    found.add(part)
                    stack.append(part)
        return found

    def by_position(self) -> dict[int, list[int]]:
        """The chosen expressions of each position, larger first, ties in the order of their text."""
        repeated = self._repeated()
        if not repeated:
            return {}
        keys = sorted([k for k in self.parents if k in repeated], key=lambda k: -self._place(k)[1])
        alone = {k: self.roots.get(k, 0) + sum(above not in repeated for above in self.parents[k]) for k in keys}
        occurs = dict(alone)
        for key in keys:
            for part in self._parts(key):
                occurs[part] += occurs[key]
        count: dict[int, int] = {}
        chosen: dict[int, list[int]] = {}
        for key in sorted(keys, key=lambda k: self._place(k)[0]):
            position = self._place(key)[0]
            if position == inf:
                continue
            total = alone[key]
            for parent in self.parents[key]:
                if parent in repeated:
                    total += occurs[parent] if self._place(parent)[0] > position else count[parent]
            count[key] = min(total, 1)
            if total > 1:
                chosen.setdefault(int(position), []).append(key)
        for found in chosen.values():
            found.sort(key=lambda k: (-self._place(k)[1], print_expr(self.facts.node[k])))
        return chosen
