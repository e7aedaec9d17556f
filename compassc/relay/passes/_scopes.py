"""In which scope each value of a function belongs: bodies of functions, branches, bodies of lets, arms of matches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from compass_core.dataclass import dataclass
from compassc.relay.expr import Constructor, Expr, Function, GlobalVar, If, Let, Match, Var
from compassc.relay.operators import Op
from compassc.relay.visit import children, post_order, with_children

ATOMS = (Var, GlobalVar, Op, Constructor)


@dataclass(eq=False)
class Scope:
    """A part of a program that has its own bindings, in the order they are made in."""

    parent: Scope | None = None
    depth: int = 0
    bindings: list[tuple[Var, Expr]] = field(default_factory=list)

    def below(self) -> Scope:
        """A new scope within this one."""
        return Scope(self, self.depth + 1)

    def around(self, body: Expr) -> Expr:
        """An expression in the bindings of the scope."""
        for v, value in reversed(self.bindings):
            body = Let(v, value, body)
        return body


def common(a: Scope, b: Scope) -> Scope:
    """The innermost scope that has both."""
    while a is not b:
        if a.depth >= b.depth:
            assert a.parent is not None
            above = a.parent
            if b.depth == a.depth:
                assert b.parent is not None
                b = b.parent
            a = above
        else:
            assert b.parent is not None
            b = b.parent
    return a


class Scopes:
    """The scope of each value within `root`: the innermost that all its users are in. `inner`: the scope that an expression
    opens for one of its parts. `lifted`: values of which the first user is in a scope further in. `lets`: bodies of lets are
    scopes."""

    def __init__(self, root: Expr, closed: Callable[[Expr], bool], lets: bool) -> None:
        self.order = list(post_order(root, closed))
        self.of: dict[int, Scope] = {id(root): Scope()}
        self.inner: dict[tuple[int, int], Scope] = {}
        self.lifted: set[int] = set()
        first: dict[int, Scope] = {}
        for e in reversed(self.order):
            scope = self.of[id(e)]
            if e is not root and closed(e):
                continue
            opens = _opens(e, lets)
            for place, child in enumerate(children(e)):
                at = scope
                if place in opens:
                    at = self.inner[id(e), place] = scope.below()
                known = self.of.get(id(child))
                self.of[id(child)] = at if known is None else common(known, at)
                first[id(child)] = at
        self.lifted = {id(e) for e in self.order if id(e) in first and self.of[id(e)] is not first[id(e)]}


def _opens(e: Expr, lets: bool) -> Sequence[int]:
    """The places among the children of an expression that are scopes."""
    if isinstance(e, Function):
        return (len(e.params),)
    if isinstance(e, If):
        return (1, 2)
    if isinstance(e, Match):
        return range(1, len(e.clauses) + 1)
    return (2,) if lets and isinstance(e, Let) else ()


def rebuilt(e: Expr, parts: Sequence[Expr], scopes: Scopes) -> Expr:
    """An expression with other parts, each in the bindings of the scope that it opens."""
    wrapped = [
        scopes.inner[id(e), i].around(part) if (id(e), i) in scopes.inner else part for i, part in enumerate(parts)
    ]
    return with_children(e, wrapped)
