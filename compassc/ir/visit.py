"""Walking and rewriting IR trees.

`Rewriter` dispatches on the node class: a subclass defines a method named after a class (`def Binary(self, e)`), and
everything else is rebuilt only where a child changed. Expression results are memoised per rewriter while
`memo` is on, because expressions are immutable and shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from compass_core.errors import CompassError

from . import exprs as E
from . import stmts as S
from .exprs import Expr, Var
from .stmts import Body, PrimFunc, Stmt

_CLASSES = {c.__name__: c for m in (E, S) for c in vars(m).values() if isinstance(c, type)}


class Rewriter:
    """Rewrites a function. Subclasses add methods named after node classes.

    An expression method returns the new expression; a statement method returns a statement, a sequence of statements
    that replaces it, or None to drop it. `interest`: only expressions with one of these flags are entered (0: all).
    """

    interest = 0
    _table: ClassVar[dict[type, str]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._table = {c: name for name, c in _CLASSES.items() if hasattr(cls, name)}

    def __init__(self) -> None:
        self._methods = {c: getattr(self, name) for c, name in self._table.items()}

    def expr(self, e: Expr) -> Expr:
        """The rewritten expression."""
        if self.interest and not e.flags & self.interest:
            return e
        method = self._methods.get(type(e))
        return e.map(self.expr) if method is None else method(e)

    def default(self, e: Expr) -> Expr:
        """Rewrite the children only."""
        return e.map(self.expr)

    def stmt(self, s: Stmt) -> Any:
        method = self._methods.get(type(s))
        return s.map(self.expr, self.body) if method is None else method(s)

    def default_stmt(self, s: Stmt) -> Stmt:
        return s.map(self.expr, self.body)

    def body(self, body: Body) -> Body:
        """The rewritten statements; the same tuple when nothing changed."""
        out: list[Stmt] = []
        changed = False
        for s in body:
            try:
                new = self.stmt(s)
            except CompassError as e:
                if e.span is None:
                    e.span = s.span
                raise
            if new is s:
                out.append(s)
                continue
            changed = True
            if new is None:
                continue
            if isinstance(new, (list, tuple)):
                out.extend(new)
            else:
                out.append(new)
        return tuple(out) if changed else body

    def function(self, f: PrimFunc) -> PrimFunc:
        body = self.body(f.body)
        return f if body is f.body else f.replace(body=body)


def walk_exprs(e: Expr) -> Iterator[Expr]:
    """The expression and everything in it, parents first."""
    stack = [e]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children()))


def walk_stmts(body: Body) -> Iterator[Stmt]:
    """All statements of a body in source order, outer before inner."""
    stack = list(reversed(body))
    while stack:
        s = stack.pop()
        yield s
        for nested in reversed(s.bodies()):
            stack.extend(reversed(nested))


def all_exprs(body: Body, flags: int = 0) -> Iterator[Expr]:
    """Every expression node below `body`; with `flags`, only inside trees that have one of them."""
    for s in walk_stmts(body):
        for root in s.exprs():
            if not flags or root.flags & flags:
                yield from walk_exprs(root)


class _Substitute(Rewriter):
    def __init__(self, mapping: dict[Var, Expr]) -> None:
        super().__init__()
        self.mapping = mapping

    def Var(self, e: Var) -> Expr:
        return self.mapping.get(e, e)


class _SubstituteDeep(_Substitute):
    """Also where a variable is the target of a statement or the storage of a buffer."""

    def stmt(self, s: Stmt) -> Any:
        new = s.map(self.expr, self.body)
        defined = {f.name: self._defined(getattr(new, f.name)) for f in new.declared if f.defines}
        changed = any(getattr(new, name) is not value for name, value in defined.items())
        return new.replace(**defined) if changed else new

    def _defined(self, target: Var | E.Buffer) -> Any:
        """What stands for a variable or storage that a statement defines or changes."""
        return target.map(self.expr) if isinstance(target, E.Buffer) else self.mapping.get(target, target)


def substitute(node: Expr, mapping: dict[Var, Expr]) -> Expr:
    """`node` with variables replaced by expressions."""
    return _Substitute(mapping).expr(node) if mapping else node


def substitute_body(body: Body, mapping: dict[Var, Expr]) -> Body:
    """A body with uses of variables replaced by expressions."""
    return _Substitute(mapping).body(body) if mapping else body


def rename_vars(body: Body, mapping: dict[Var, Var]) -> Body:
    """A body with variables replaced by others, also where they are defined or assigned."""
    return _SubstituteDeep(mapping).body(body) if mapping else body


def assigned_vars(f: PrimFunc) -> set[Var]:
    """Variables whose value changes after their definition: assigned, set by element, or address-taken."""
    changed: set[Var] = set()
    for s in walk_stmts(f.body):
        if type(s) in (S.Assign, S.SetElement):
            changed.add(s.var)
        for root in s.exprs():
            if root.flags & (E.F_POINTER | E.F_CALL):
                changed.update(e.var for e in walk_exprs(root) if type(e) is E.AddressOf)
    return changed


def for_each_function(fn: Callable[[PrimFunc], PrimFunc]) -> Callable[[S.IRModule], S.IRModule]:
    """A module pass from a function pass."""
    return lambda module: module.map_functions(fn)
