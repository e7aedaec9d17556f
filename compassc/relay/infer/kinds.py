"""Kinds of types: which types may stand where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compassc.ir.errors import ExpressionError
from compassc.relay.infer.rules import Definitions
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
    TypeKind,
    TypeRelation,
    TypeVar,
)


def check_kind(t: Type, definitions: Definitions | None = None) -> TypeKind:
    """The kind of a type. ExpressionError naming the part that is of another kind than its place asks for. Applications of
    defined types are held against `definitions`."""
    return _RULES[type(t)](t, definitions)


def _expect(of: Type, parts: Sequence[Type], kind: TypeKind, definitions: Definitions | None) -> None:
    for part in parts:
        found = check_kind(part, definitions)
        if found != kind:
            raise ExpressionError(f"{part} is of kind {found.name}, {of} takes the kind {kind.name}")


def _own(t: IncompleteType | TypeVar | GlobalTypeVar, definitions: Definitions | None) -> TypeKind:
    return t.kind


def _tensor(t: TensorType, definitions: Definitions | None) -> TypeKind:
    return TypeKind.Type


def _tuple(t: TupleType, definitions: Definitions | None) -> TypeKind:
    _expect(t, t.fields, TypeKind.Type, definitions)
    return TypeKind.Type


def _function(t: FuncType, definitions: Definitions | None) -> TypeKind:
    _expect(t, [*t.arg_types, t.ret_type], TypeKind.Type, definitions)
    _expect(t, t.type_constraints, TypeKind.Constraint, definitions)
    return TypeKind.Type


def _reference(t: RefType, definitions: Definitions | None) -> TypeKind:
    _expect(t, [t.value], TypeKind.Type, definitions)
    return TypeKind.Type


def _relation(t: TypeRelation, definitions: Definitions | None) -> TypeKind:
    _expect(t, t.args, TypeKind.Type, definitions)
    return TypeKind.Constraint


def _application(t: TypeCall, definitions: Definitions | None) -> TypeKind:
    if not isinstance(t.func, GlobalTypeVar) or t.func.kind != TypeKind.AdtHandle:
        kind = check_kind(t.func, definitions)
        raise ExpressionError(
            f"{t.func} is of kind {kind.name}, what is applied is the name of a definition (AdtHandle)"
        )
    _expect(t, t.args, TypeKind.Type, definitions)
    definition = definitions.type_definition(t.func) if definitions else None
    if definition is None:
        raise ExpressionError(f"the module does not define the type {t.func.name_hint}")
    if len(definition.type_vars) != len(t.args):
        raise ExpressionError(
            f"{t.func.name_hint} takes {len(definition.type_vars)} types, {len(t.args)} are given", "give one for each"
        )
    return TypeKind.Type


def _definition(t: TypeData, definitions: Definitions | None) -> TypeKind:
    _expect(t, [t.header], TypeKind.AdtHandle, definitions)
    _expect(t, t.type_vars, TypeKind.Type, definitions)
    for c in t.constructors:
        if c.belong_to is not t.header and c.belong_to != t.header:
            raise ExpressionError(f"the constructor {c.name_hint} makes {c.belong_to}, not {t.header}")
        _expect(t, c.inputs, TypeKind.Type, definitions)
    return TypeKind.TypeData


_RULES: Mapping[type, Callable[..., TypeKind]] = {
    FuncType: _function,
    GlobalTypeVar: _own,
    IncompleteType: _own,
    RefType: _reference,
    TensorType: _tensor,
    TupleType: _tuple,
    TypeCall: _application,
    TypeData: _definition,
    TypeRelation: _relation,
    TypeVar: _own,
}
