"""Which variables and which variables of types a program uses, and which it defines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compassc.relay.expr import (
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
    Let,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    Var,
)
from compassc.relay.type_visit import everywhere
from compassc.relay.types import FuncType, Type, TypeVar
from compassc.relay.visit import children, post_order


def pattern_vars(pattern: Pattern) -> list[Var]:
    """The variables that a pattern defines, from left to right."""
    found: list[Var] = []
    todo = [pattern]
    while todo:
        p = todo.pop()
        if isinstance(p, PatternVar):
            found.append(p.var)
        elif isinstance(p, (PatternConstructor, PatternTuple)):
            todo.extend(reversed(p.patterns))
    return found


def defined(e: object) -> list[Var]:
    """The variables that an expression or a clause defines itself, not those of its parts."""
    if isinstance(e, Function):
        return list(e.params)
    if isinstance(e, Let):
        return [e.var]
    return pattern_vars(e.lhs) if isinstance(e, Clause) else []


def _parts(e: Expr | Clause) -> Iterable[Expr | Clause]:
    """What is walked through after what is defined."""
    if isinstance(e, Clause):
        return (e.rhs,)
    if isinstance(e, Match):
        return (e.data, *e.clauses)
    return children(e)


def _walk(root: Expr) -> Iterator[tuple[bool, Var]]:
    """Whether it is defined, and the variable, for all places where variables are defined or used, in order."""
    seen = {id(root)}
    stack: list[Iterator[Expr | Clause]] = [iter([root])]
    while stack:
        e = next(stack[-1], None)
        if e is None:
            stack.pop()
            continue
        if isinstance(e, Var):
            yield False, e
            continue
        yield from ((True, v) for v in defined(e))
        inner = [c for c in _parts(e) if id(c) not in seen or isinstance(c, Var)]
        stack.append(_first_visits(inner, seen))


def _first_visits(parts: list[Expr | Clause], seen: set[int]) -> Iterator[Expr | Clause]:
    """Those that have not been visited when their turn comes."""
    for part in parts:
        if id(part) not in seen or isinstance(part, Var):
            seen.add(id(part))
            yield part


def all_vars(e: Expr) -> list[Var]:
    """Every variable of an expression, in the order they are met in."""
    return list(dict.fromkeys(v for _, v in _walk(e)))


def bound_vars(e: Expr | Pattern) -> list[Var]:
    """The variables that an expression or a pattern defines, in the order they are met in."""
    if isinstance(e, Pattern):
        return pattern_vars(e)
    return list(dict.fromkeys(v for is_defined, v in _walk(e) if is_defined))


def free_vars(e: Expr) -> list[Var]:
    """The variables that an expression uses and nowhere defines, in the order they are met in."""
    bound = set(bound_vars(e))
    return [v for v in all_vars(e) if v not in bound]


def _types(e: Expr) -> Iterator[Type]:
    """The types that an expression is written with, without those of its parts."""
    if isinstance(e, Var) and e.type_annotation is not None:
        yield e.type_annotation
    elif isinstance(e, Function):
        yield from e.type_params
        if e.ret_type is not None:
            yield e.ret_type
    elif isinstance(e, Call):
        yield from e.type_args
    elif isinstance(e, Constructor):
        yield from e.inputs


def _type_walk(given: Expr | Type, module: object = None) -> Iterator[tuple[bool, TypeVar]]:
    if isinstance(given, Type):
        for t in everywhere(given):
            if isinstance(t, FuncType):
                yield from ((True, v) for v in t.type_params)
            if isinstance(t, TypeVar):
                yield False, t
        return
    definitions = getattr(module, "type_definitions", {})
    for v in [] if isinstance(given, Pattern) else all_vars(given):
        for t in _types(v):
            yield from _type_walk(t)
    for e in post_order(given):
        if isinstance(e, Function):
            yield from ((True, t) for t in e.type_params)
        if isinstance(e, Constructor) and e.belong_to in definitions:
            yield from ((True, t) for t in definitions[e.belong_to].type_vars)
        if not isinstance(e, Var):
            for t in _types(e):
                yield from _type_walk(t)


def all_type_vars(given: Expr | Type, mod: object = None) -> list[TypeVar]:
    """Every variable of types that an expression or a type is written with."""
    return _once(v for _, v in _type_walk(given, mod))


def bound_type_vars(given: Expr | Type, mod: object = None) -> list[TypeVar]:
    """The variables of types that functions in it are polymorphic in; with a module those of the definitions whose constructors
    it uses, too."""
    return _once(v for is_defined, v in _type_walk(given, mod) if is_defined)


def free_type_vars(given: Expr | Type, mod: object = None) -> list[TypeVar]:
    """The variables of types that it uses and nothing in it is polymorphic in."""
    bound = {id(v) for v in bound_type_vars(given, mod)}
    return [v for v in all_type_vars(given, mod) if id(v) not in bound]


def _once(found: Iterable[TypeVar]) -> list[TypeVar]:
    return list({id(v): v for v in found}.values())
