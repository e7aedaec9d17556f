"""Walking and rewriting IR trees.

`Rewriter` dispatches on the node class: a subclass marks its methods (`@rewrites(E.Binary)`), and everything else is
rebuilt only where a child changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

from compass_core.errors import CompassError, Span

from . import exprs as E
from . import stmts as S
from .exprs import Expr, PlacedExpr, Var
from .node import Node
from .stmts import Body, PrimFunc, Stmt

_N = TypeVar("_N", bound=Node)
_R = TypeVar("_R", bound="Rewriter")
_T = TypeVar("_T")
_E = TypeVar("_E", bound=Expr)
_S = TypeVar("_S", bound=Stmt)
Rewritten = Stmt | Sequence[Stmt] | None
"""What a statement becomes: a statement, several of them, or nothing."""


def rewrites(cls: type[_N]) -> Callable[[Callable[[_R, _N], _T]], Callable[[_R, _N], _T]]:
    """Mark the method of a `Rewriter` that takes the nodes of a class."""

    def mark(method: Callable[[_R, _N], _T]) -> Callable[[_R, _N], _T]:
        method.rewrites = cls  # type: ignore[attr-defined]  # a mark on a function
        return method

    return mark


class Rewriter:
    """Rewrites a function. Subclasses have methods marked with `rewrites`, one per class of nodes that they change.

    An expression method returns the new expression, whose calls and accesses get the place of the old one where they have
    none; a statement method returns a statement, a sequence of statements
    that replaces it, or None to drop it. `interest`: only expressions with one of these flags are entered (0: all).
    """

    interest = 0
    skips_statements: ClassVar[bool] = False
    """Whether statements without interest stay although there are methods of statements."""
    _table: ClassVar[dict[type, str]] = {}
    _skipped: int = 0
    """Statements without any of these flags stay as they are (0: all are looked at)."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = {method.rewrites: name for name, method in vars(cls).items() if hasattr(method, "rewrites")}
        cls._table = {**cls._table, **own}
        plain = cls.stmt is Rewriter.stmt and not any(issubclass(kind, Stmt) for kind in cls._table)
        cls._skipped = cls.interest if plain or cls.skips_statements else 0

    def __init__(self) -> None:
        self._methods: dict[type, Callable[[Any], Any]] = {c: getattr(self, name) for c, name in self._table.items()}

    def expr(self, e: Expr) -> Expr:
        """The rewritten expression."""
        interest = self.interest
        if interest and not e.flags & interest:
            return e
        method = self._methods.get(type(e))
        if method is None:
            return e if type(e) in E.LEAVES else e.map(self.expr)
        new: Expr = method(e)
        if new is not e and isinstance(e, PlacedExpr):
            return located(new, e.span)
        return new

    def default(self, e: _E) -> _E:
        """Rewrite the children only."""
        return e.map(self.expr)

    def stmt(self, s: Stmt) -> Rewritten:
        """What the statement becomes."""
        method = self._methods.get(type(s))
        if method is None:
            return s.map(self.expr, self.body)
        new: Rewritten = method(s)
        return new

    def default_stmt(self, s: _S) -> _S:
        """Rewrite expressions and blocks only."""
        return s.map(self.expr, self.body)

    def body(self, body: Body) -> Body:
        """The rewritten statements; the same tuple when nothing changed."""
        out: list[Stmt] = []
        changed = False
        skipped = self._skipped
        for s in body:
            if skipped and not s.flags & skipped:
                out.append(s)
                continue
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
            for made in (new,) if isinstance(new, Stmt) else new:
                out.append(placed(made if made.span is not None else made.at(s.span)))
        return tuple(out) if changed else body

    def function(self, f: PrimFunc) -> PrimFunc:
        body = self.body(f.body)
        return f if body is f.body else f.replace(body=body)


class StatementRewriter(Rewriter):
    """Rewrites statements; their expressions stay."""

    def expr(self, e: Expr) -> Expr:
        return e

    def stmt(self, s: Stmt) -> Rewritten:
        if not s.has_blocks and type(s) not in self._methods:
            return s
        return super().stmt(s)


def located(e: _E, span: Span | None) -> _E:
    """`e` with the place `span` for all calls and accesses in it that have none; what is below a placed one has its own."""
    if span is None or not e.flags & E.F_PLACED or (isinstance(e, PlacedExpr) and e.span is not None):
        return e

    def place(part: Expr) -> Expr:
        if not part.flags & E.F_PLACED:
            return part
        if not isinstance(part, PlacedExpr):
            return part.map(place)
        return part if part.span is not None else part.map(place).at(span)

    return cast(_E, place(e))


def placed(s: _S) -> _S:
    """The statement with its own place for its calls and accesses that have none."""
    span = s.span
    if span is None or not s.flags & E.F_PLACED:
        return s
    for e in s.exprs():
        if e.flags & E.F_PLACED and _lacks_place(e):
            return s.map(lambda e: located(e, span), lambda body: body)
    return s


def _lacks_place(e: Expr) -> bool:
    if isinstance(e, PlacedExpr):
        return e.span is None
    for child in e.children():
        if child.flags & E.F_PLACED and _lacks_place(child):
            return True
    return False


def placed_exprs(s: Stmt) -> Iterator[PlacedExpr]:
    """The calls and accesses in a statement, without its blocks, parents first."""
    stack = [e for e in s.exprs() if e.flags & E.F_PLACED]
    if len(stack) > 1:
        stack.reverse()
    while stack:
        e = stack.pop()
        if isinstance(e, PlacedExpr):
            yield e
        for child in reversed(e.children()):
            if child.flags & E.F_PLACED:
                stack.append(child)


def with_places(s: _S, places: Iterable[Span | None]) -> _S:
    """The statement with places for its calls and accesses, in the order of `placed_exprs`."""
    rest = iter(places)

    def place(e: Expr) -> Expr:
        if not e.flags & E.F_PLACED:
            return e
        if not isinstance(e, PlacedExpr):
            return e.map(place)
        own = next(rest)
        return e.map(place).at(own)

    return s.map(place, lambda body: body)


def walk_exprs(e: Expr, flags: int = 0) -> Iterator[Expr]:
    """The expression and everything in it, parents first; with `flags`, only what has one of them."""
    stack = [e]
    if flags:
        while stack:
            node = stack.pop()
            if node.flags & flags:
                yield node
                stack.extend(node.children()[::-1])
        return
    while stack:
        node = stack.pop()
        yield node
        if children := node.children():
            stack.extend(children[::-1])


def walk_stmts(body: Body, flags: int = 0) -> list[Stmt]:
    """All statements of a body in source order, outer before inner; with `flags`, only those with one of them."""
    found: list[Stmt] = []

    def walk(body: Body) -> None:
        for s in body:
            if flags and not s.flags & flags:
                continue
            found.append(s)
            if s.has_blocks:
                for nested in s.bodies():
                    walk(nested)

    walk(body)
    return found


def rewrite(e: Expr, replace: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with every node for which `replace` gives another one replaced, from the root on; what it gives is
    not looked at again."""
    found = replace(e)
    return e.map(lambda child: rewrite(child, replace)) if found is None else found


def all_exprs(body: Body, flags: int = 0) -> Iterator[Expr]:
    """Every expression node below `body`; with `flags`, only those that have one of them, themselves or in their parts."""
    for s in walk_stmts(body, flags):
        for root in s.exprs():
            if not flags or root.flags & flags:
                yield from walk_exprs(root, flags)


def _flags_of(mapping: Mapping[Var, Expr]) -> int:
    """Flags of which all have one that mention the variables; 0 where there are none such."""
    return E.F_ADDRESS | E.F_CHANGES if all(v.flags & E.F_ADDRESS for v in mapping) else 0


def _substitution(mapping: Mapping[Var, Expr]) -> Callable[[Expr], Expr]:
    """What replaces the variables of expressions."""
    leaves, flags = E.LEAVES, _flags_of(mapping)

    def replaced(e: Expr) -> Expr:
        if type(e) is Var:
            return mapping.get(e, e)
        return e if type(e) in leaves or (flags and not e.flags & flags) else e.map(replaced)

    return replaced


class _Substitute(Rewriter):
    def __init__(self, mapping: Mapping[Var, Expr]) -> None:
        super().__init__()
        self.mapping, self.replaced = mapping, _substitution(mapping)
        self._skipped = _flags_of(mapping)

    def stmt(self, s: Stmt) -> Rewritten:
        return s.map(self.replaced, self.body)


class _SubstituteDeep(_Substitute):
    """Also where a variable is the target of a statement or the storage of a buffer."""

    def __init__(self, mapping: Mapping[Var, Expr]) -> None:
        super().__init__(mapping)
        self._skipped = 0

    def stmt(self, s: Stmt) -> Rewritten:
        new = s.map(self.replaced, self.body)
        changed: dict[str, object] = {}
        for name in new.defining:
            target = getattr(new, name)
            defined = self._defined(target)
            if defined is not target:
                changed[name] = defined
        return new.replace(**changed) if changed else new

    def _defined(self, target: Var | tuple[Var, ...] | E.Buffer) -> Any:
        """What stands for the variables or the storage that a statement defines or changes."""
        if isinstance(target, tuple):
            new = tuple([self.mapping.get(var, var) for var in target])
            return target if new == target else new
        return target.map(self.replaced) if isinstance(target, E.Buffer) else self.mapping.get(target, target)


def substitute(node: Expr, mapping: Mapping[Var, Expr]) -> Expr:
    """`node` with variables replaced by expressions."""
    return _substitution(mapping)(node) if mapping else node


def substitute_body(body: Body, mapping: Mapping[Var, Expr]) -> Body:
    """A body with uses of variables replaced by expressions."""
    return _Substitute(mapping).body(body) if mapping else body


def rename_vars(body: Body, mapping: Mapping[Var, Var]) -> Body:
    """A body with variables replaced by others, also where they are defined or assigned."""
    return _SubstituteDeep(mapping).body(body) if mapping else body


def assigned_vars(f: PrimFunc) -> set[Var]:
    """Variables whose value changes after their definition: assigned, set by element, or address-taken."""
    changed: set[Var] = set()
    for s in walk_stmts(f.body, E.F_CHANGES):
        if isinstance(s, (S.Assign, S.SetElement)):
            changed.add(s.var)
        for root in s.exprs():
            if root.flags & E.F_CHANGES:
                changed.update(e.var for e in walk_exprs(root) if type(e) is E.AddressOf)
    return changed


def for_each_function(fn: Callable[[PrimFunc], PrimFunc]) -> Callable[[S.IRModule], S.IRModule]:
    """A module pass from a function pass."""
    return lambda module: module.map_functions(fn)
