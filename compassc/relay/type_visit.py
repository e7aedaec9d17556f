"""Walks over types: what a type consists of, and types with other parts. Types are shallow, so these walks recurse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import is_

from compassc.relay.types import (
    FuncType,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeRelation,
    TypeVar,
)

_PARTS: Mapping[type, Sequence[str]] = {
    TupleType: ("fields",),
    FuncType: ("arg_types", "ret_type", "type_constraints"),
    TypeCall: ("func", "args"),
    RefType: ("value",),
    TypeRelation: ("args",),
}
"""The fields of each class that hold types. Type parameters are binders and no parts."""


def parts(t: Type) -> Iterator[Type]:
    """The types that a type consists of."""
    for name in _PARTS.get(type(t), ()):
        value = getattr(t, name)
        if isinstance(value, tuple):
            yield from value
        else:
            yield value


def with_parts(t: Type, fn: Callable[[Type], Type]) -> Type:
    """The type with each of its parts replaced; itself where nothing changes."""
    names = _PARTS.get(type(t))
    if names is None:
        return t
    changes: dict[str, object] = {}
    for name in names:
        value = getattr(t, name)
        if isinstance(value, tuple):
            made = tuple([fn(part) for part in value])
            if not all(map(is_, made, value)):
                changes[name] = made
        elif (new := fn(value)) is not value:
            changes[name] = new
    return t.replace(**changes) if changes else t


def everywhere(t: Type) -> list[Type]:
    """A type and all that it consists of, each before its parts."""
    found = [t]
    for part in parts(t):
        found += everywhere(part) if type(part) in _PARTS else (part,)
    return found


def holes(t: Type) -> list[IncompleteType]:
    """The parts of a type that are not known."""
    return [part for part in everywhere(t) if isinstance(part, IncompleteType)]


def substituted(t: Type, by: Mapping[int, Type]) -> Type:
    """The type with type variables, given by `id`, replaced."""
    if isinstance(t, TypeVar):
        return by.get(id(t), t)
    return t if isinstance(t, TensorType) else with_parts(t, lambda part: substituted(part, by))


def free_type_vars(t: Type, bound: Sequence[TypeVar] = ()) -> list[TypeVar]:
    """The type variables of a type that nothing in it binds, in order."""
    if isinstance(t, TypeVar):
        return [] if any(t is b for b in bound) else [t]
    if isinstance(t, FuncType):
        bound = (*bound, *t.type_params)
    found: list[TypeVar] = []
    for part in parts(t):
        found += [v for v in free_type_vars(part, bound) if not any(v is f for f in found)]
    return found
