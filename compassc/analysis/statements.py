"""Queries about statements: what they define, change and leave, and copies of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.exprs import Expr, Var
from ..ir.stmts import Body, PrimFunc, Stmt
from ..ir.visit import rename_vars, walk_exprs, walk_stmts

LOOPS = (S.For, S.While)


@lru_cache(maxsize=4)
def mutable_vars(f: PrimFunc) -> frozenset[Var]:
    """Variables that may change after their definition: assigned, set by element, address taken, or given to inline
    assembly."""
    changed: set[Var] = set()
    for s in walk_stmts(f.body, E.F_CHANGES):
        if isinstance(s, (S.Assign, S.SetElement)):
            changed.add(s.var)
        for root in s.exprs():
            for e in walk_exprs(root) if root.flags & E.F_CHANGES else ():
                if type(e) is E.AddressOf:
                    changed.add(e.var)
                elif type(e) is E.Call and "asm" in e.op:
                    changed.update(x for x in walk_exprs(e) if type(x) is Var)
    return frozenset(changed)


def own_breaks(body: Body) -> bool:
    """Whether a `break` or `continue` in this loop body is of this loop (not of one inside it)."""
    stack = list(body)
    while stack:
        s = stack.pop()
        if isinstance(s, (S.Break, S.Continue)):
            return True
        if s.flags & E.F_JUMP and not isinstance(s, LOOPS):
            for nested in s.bodies():
                stack.extend(nested)
    return False


def leaves(s: Stmt) -> bool:
    """Whether control may leave the block of `s` from inside it: a return, or a break or continue of an outer loop."""
    if not s.flags & E.F_JUMP:
        return False
    if not s.has_blocks or any(type(x) is S.Return for body in s.bodies() for x in walk_stmts(body, E.F_JUMP)):
        return True
    return not isinstance(s, LOOPS) and any(own_breaks(body) for body in s.bodies())


def defined_vars(body: Body) -> Iterator[Var]:
    """The variables that the statements below `body` define, storage included."""
    for s in walk_stmts(body):
        yield from S.defined(s)


def fresh_copy(body: Body) -> Body:
    """The same statements with variables of their own, so that both copies can stand in one function."""
    return rename_vars(body, {v: Var(v.name, v.dtype, v.nonneg) for v in defined_vars(body)})


def is_const(e: Expr, value: int) -> bool:
    return type(e) is E.IntImm and e.value == value


def counts_up(s: S.For) -> bool:
    """Whether a loop counts from 0 by 1."""
    return is_const(s.min, 0) and is_const(s.step, 1)


def used_vars(body: Body) -> list[Var]:
    """Every mention of a variable in the expressions below `body`, in order."""
    found: list[Var] = []

    def add(exprs: tuple[Expr, ...]) -> None:
        for e in exprs:
            if type(e) is Var:
                found.append(e)
            elif type(e) not in E.LEAVES:
                add(e.children())

    for s in walk_stmts(body):
        add(s.exprs())
    return found


def has_blocks(f: PrimFunc) -> bool:
    """Whether a function is still one of blocks."""
    return any(isinstance(s, S.Block) for s in walk_stmts(f.body))


def is_lowered(f: PrimFunc) -> bool:
    """Whether a function says what each TEC does: it is none of blocks, nor one of plain loops for one processor."""
    return not f.attr(S.EXPRESSIONS) and not has_blocks(f)
