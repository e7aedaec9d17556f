"""Programs in the order of their steps: bindings and branches become nested lets and ifs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field

from compass_core.dataclass import dataclass
from compassc.ir.errors import ExpressionError
from compassc.relay.expr import Expr, If, Let, Var, as_expr
from compassc.relay.types import IncompleteType, Type, scalar_type


class WrongOrder(ExpressionError):
    """A step that cannot come here."""


@dataclass
class _Scope:
    """Bindings, and what they end in: a value, or a branch whose other side may be missing."""

    bindings: list[tuple[Var, Expr]] = field(default_factory=list)
    value: Expr | None = None
    branch: tuple[Expr, Expr] | None = None

    def closed(self) -> Expr:
        """The value in its bindings."""
        if self.value is None:
            why = "an if has no else" if self.branch is not None else "no ret was called"
            raise WrongOrder(
                f"the scope has no value: {why}", "end it with ret(value), or with if_scope and else_scope"
            )
        value = self.value
        for v, bound in reversed(self.bindings):
            value = Let(v, bound, value)
        return value


class ScopeBuilder:
    """`let`, `if_scope`, `else_scope` and `ret` in the order of a program; `get` gives its expression."""

    def __init__(self) -> None:
        self._scopes = [_Scope()]

    def let(self, var: Var | str | tuple[str, Type | str], value: object) -> Var:
        """Bind a value to a variable, a name, or a name and a type; gives the variable."""
        if isinstance(var, (tuple, list)):
            if len(var) > 2:
                raise ExpressionError("a variable has a name and a type", f"give two parts in place of {len(var)}")
            made = Var(var[0], self._type(var[1]) if len(var) == 2 else None)
        else:
            made = Var(var) if isinstance(var, str) else var
        self._scopes[-1].bindings.append((made, as_expr(value)))
        return made

    @staticmethod
    def _type(given: object) -> Type:
        return given if isinstance(given, Type) else scalar_type(str(given))

    @contextmanager
    def if_scope(self, cond: object) -> Iterator[None]:
        """The side of a branch that is taken where `cond` holds."""
        outer = self._scopes[-1]
        if outer.value is not None:
            raise WrongOrder("this scope has its value already", "call ret once, at the end")
        if outer.branch is not None:
            raise WrongOrder("the if before this one has no else", "add an else_scope")
        inner = _Scope()
        self._scopes.append(inner)
        yield
        self._scopes.pop()
        outer.branch = (as_expr(cond), inner.closed())

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """The other side of the branch before it, which is the value of the scope they stand in."""
        outer = self._scopes[-1]
        if outer.branch is None or outer.value is not None:
            raise WrongOrder("there is no if before this else", "begin with if_scope(condition)")
        inner = _Scope()
        self._scopes.append(inner)
        yield
        self._scopes.pop()
        outer.value = If(*outer.branch, inner.closed())

    def ret(self, value: object) -> None:
        """The value of the scope."""
        scope = self._scopes[-1]
        if scope.value is not None or scope.branch is not None:
            raise WrongOrder("this scope has its value already", "call ret once, at the end")
        scope.value = as_expr(value)

    def type_of(self, expr: object) -> Type:
        """The type of a variable; of other expressions one that inference is to find."""
        given = as_expr(expr)
        if isinstance(given, Var) and given.type_annotation is not None:
            return given.type_annotation
        hole = IncompleteType()
        self._scopes[-1].bindings.append((Var("_", hole), given))
        return hole

    def get(self) -> Expr:
        """The whole program."""
        if len(self._scopes) != 1:
            raise WrongOrder("a scope is still open", "call get() outside of if_scope and else_scope")
        return self._scopes[0].closed()
