"""Classes that walk programs, of which users override methods for kinds of expressions and types.

They recurse, as their methods may do anything with the parts of an expression. Walks over programs that are deep are functions:
`relay.visit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compassc.ir.errors import ExpressionError
from compassc.relay.expr import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from compassc.relay.operators import Op
from compassc.relay.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeRelation,
    TypeVar,
)
from compassc.relay.visit import children, with_children

_METHODS: Mapping[type, str] = {
    Function: "visit_function",
    Call: "visit_call",
    Let: "visit_let",
    Var: "visit_var",
    GlobalVar: "visit_global_var",
    If: "visit_if",
    Tuple: "visit_tuple",
    TupleGetItem: "visit_tuple_getitem",
    Constant: "visit_constant",
    Op: "visit_op",
    RefCreate: "visit_ref_create",
    RefRead: "visit_ref_read",
    RefWrite: "visit_ref_write",
    Constructor: "visit_constructor",
    Match: "visit_match",
}
_TYPE_METHODS: Mapping[type, str] = {
    TypeVar: "visit_type_var",
    IncompleteType: "visit_incomplete_type",
    TensorType: "visit_tensor_type",
    FuncType: "visit_func_type",
    TupleType: "visit_tuple_type",
    TypeRelation: "visit_type_relation",
    RefType: "visit_ref_type",
    GlobalTypeVar: "visit_global_type_var",
    TypeCall: "visit_type_call",
    TypeData: "visit_type_data",
}


class TooDeep(ExpressionError):
    """A program that is too deep for a class that recurses."""


class ExprFunctor:
    """Calls the method of the kind of an expression, once for each expression."""

    def __init__(self) -> None:
        self.memo_map: dict[Expr, Any] = {}
        """What the methods gave."""

    def visit(self, expr: Expr) -> Any:
        """What the method of its kind gives of an expression. The place of an expression goes to what takes its place and has
        none."""
        if expr in self.memo_map:
            return self.memo_map[expr]
        name = _METHODS.get(type(expr)) or ("visit_op" if isinstance(expr, Op) else "")
        if not name:
            raise ExpressionError(f"a {type(expr).__name__} has no method", "override visit for it")
        try:
            found = getattr(self, name)(expr)
        except RecursionError:
            raise TooDeep(
                "the program is too deep for this walk", "walk it with relay.analysis.post_order_visit"
            ) from None
        if (
            isinstance(found, (Call, Function, Let, If, Tuple, TupleGetItem))
            and found.span is None
            and expr is not found
        ):
            found = found.replace(span=getattr(expr, "span", None))
        self.memo_map[expr] = found
        return found

    def _missing(self, expr: Expr) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say what is done with a {type(expr).__name__}")

    def visit_type(self, typ: Type) -> Any:
        """A type that stands in an expression."""
        return typ


class ExprVisitor(ExprFunctor):
    """Visits every expression; of a call the callee and then the arguments, of a let the variable, its value and the body."""

    def _children(self, expr: Expr) -> None:
        for child in children(expr):
            self.visit(child)


class ExprMutator(ExprFunctor):
    """Makes a program of what the methods give: an expression with other parts, or itself where none has changed."""

    def _rebuilt(self, expr: Expr) -> Expr:
        return with_children(expr, [self.visit(child) for child in children(expr)])

    def visit_clause(self, clause: Clause) -> Clause:
        """A clause with what is made of its right side."""
        rhs = self.visit(clause.rhs)
        return clause if rhs is clause.rhs else Clause(clause.lhs, rhs, clause.span)

    def visit_match(self, match: Match) -> Expr:
        """A match with what is made of its parts."""
        data = self.visit(match.data)
        clauses = tuple([self.visit_clause(c) for c in match.clauses])
        if data is match.data and all(a is b for a, b in zip(clauses, match.clauses)):
            return match
        return match.replace(data=data, clauses=clauses)


def _itself(self: ExprMutator, expr: Expr) -> Expr:
    return expr


_ATOMS = (Var, GlobalVar, Constant, Op, Constructor)
for _kind, _name in _METHODS.items():
    setattr(ExprFunctor, _name, ExprFunctor._missing)
    setattr(ExprVisitor, _name, ExprVisitor._children)
    if _kind is not Match:
        setattr(ExprMutator, _name, _itself if _kind in _ATOMS else ExprMutator._rebuilt)


class TypeFunctor:
    """Calls the method of the kind of a type."""

    def visit(self, typ: Type) -> Any:
        """What the method of its kind gives of a type."""
        name = _TYPE_METHODS.get(type(typ))
        if name is None:
            raise ExpressionError(f"a {type(typ).__name__} has no method", "override visit for it")
        return getattr(self, name)(typ)

    def _missing(self, typ: Type) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say what is done with a {type(typ).__name__}")


_TYPE_PARTS: Mapping[type, tuple[str, ...]] = {
    FuncType: ("arg_types", "ret_type", "type_params", "type_constraints"),
    TupleType: ("fields",),
    TypeRelation: ("args",),
    RefType: ("value",),
    TypeCall: ("func", "args"),
    TypeData: ("header", "type_vars"),
}


class TypeVisitor(TypeFunctor):
    """Visits every part of a type."""

    def _parts(self, typ: Type) -> None:
        for name in _TYPE_PARTS.get(type(typ), ()):
            value = getattr(typ, name)
            for part in value if isinstance(value, tuple) else (value,):
                self.visit(part)


class TypeMutator(TypeFunctor):
    """Makes a type of what the methods give; every node is a new one, of a variable one for all its places."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Type, Type]] = {}

    def _variable(self, typ: Type) -> Type:
        """A new variable, or hole, with the one it takes the place of, which it keeps alive."""
        return self._made.setdefault(id(typ), (typ, typ.replace()))[1]

    def _rebuilt(self, typ: Type) -> Type:
        changes: dict[str, object] = {}
        for name in _TYPE_PARTS.get(type(typ), ()):
            value = getattr(typ, name)
            changes[name] = tuple([self.visit(v) for v in value]) if isinstance(value, tuple) else self.visit(value)
        return typ.replace(**changes)


for _name in _TYPE_METHODS.values():
    setattr(TypeFunctor, _name, TypeFunctor._missing)
    setattr(TypeVisitor, _name, TypeVisitor._parts)
    setattr(TypeMutator, _name, TypeMutator._rebuilt)
for _name in ("visit_type_var", "visit_incomplete_type", "visit_global_type_var"):
    setattr(TypeMutator, _name, TypeMutator._variable)
