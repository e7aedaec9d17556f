"""Values known while a kernel is parsed: items of constant sequences, comprehensions, NumPy's scalars."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...ir import exprs as E
from ...ir.dtypes import pointer_type
from ..specs import MetaVar
from ..tiles.tile import Tile, copied
from .errors import language_error
from .operators import binary
from .scope import Scope
from .values import ZERO, PointerValue, Value, is_runtime, kind_name, plain

MOST_ITEMS = 4096
"""Copies of a loop's body, items of a comprehension."""
Keep = Callable[[object], object]
"""Gives a value that later statements do not change: what is computed at run time gets a variable of its own."""


def python_number(x: object) -> Any:
    """A NumPy scalar as the Python number that it is; anything else unchanged."""
    if type(x).__module__ == "numpy" and hasattr(x, "item") and getattr(x, "shape", None) == ():
        found = x.item()
        return found if type(found) in (int, float, bool) else x
    return x


def items_of(value: object, what: str) -> list[object]:
    """The items of a constant sequence. CompassError for what is none, or has too many."""
    if is_runtime(value) or not hasattr(value, "__iter__"):
        raise language_error(
            "loop-iterator",
            f"{what} runs over range, the loops of S or a constant sequence, not over {kind_name(value)}",
            "use range(...) and subscript",
        )
    found: list[object] = []
    for item in value:
        if len(found) == MOST_ITEMS:
            raise language_error(
                "unroll",
                f"{what} runs over more than {MOST_ITEMS} items",
                "each item has code of its own: use range(...), which makes one loop",
            )
        found.append(python_number(item))
    return found


def kept(define: Callable[[E.Var, E.Expr], None], value: Any, name: str = "item") -> Any:
    """`value` in variables of its own where it is computed at run time, which `define` defines."""
    if isinstance(value, Value):
        if isinstance(value.expr, (E.IntImm, E.FloatImm)):
            return value
        var = E.Var(name, value.dtype)
        define(var, value.expr)
        return Value(var)
    if isinstance(value, PointerValue):
        var = E.Var(name, pointer_type(value.elem, value.scope))
        define(var, value.expr)
        return PointerValue(value.elem, var, ZERO)
    if isinstance(value, Tile):
        return copied(value).held()
    if type(value) in (tuple, list):
        return type(value)(kept(define, item, f"{name}_{i}") for i, item in enumerate(value))
    if type(value) is dict:
        return {key: kept(define, item, name) for key, item in value.items()}
    return kept(define, value.value, name) if isinstance(value, MetaVar) else value


def unpacked(target: ast.expr, value: object) -> Iterator[tuple[str, object]]:
    """The names of a loop's target with their values."""
    if isinstance(target, ast.Name):
        yield target.id, python_number(value)
        return
    if not isinstance(target, (ast.Tuple, ast.List)):
        raise language_error("loop-targets", "the variables of a loop are names", "write for i, x in enumerate(items)")
    items = items_of(value, "the target of a loop")
    if len(items) != len(target.elts):
        raise language_error(
            "loop-targets", f"{len(target.elts)} loop variables for {len(items)} values", "write one name per value"
        )
    for t, item in zip(target.elts, items):
        yield from unpacked(t, item)


def comprehension(
    scope: Scope,
    evaluate: Callable[[ast.expr], object],
    keep: Keep,
    clauses: list[ast.comprehension],
    make: Callable[[], object],
) -> list[object]:
    """`make()` for each turn of the loops of a comprehension, with their variables bound."""
    found: list[object] = []

    def turn(position: int) -> None:
        if position == len(clauses):
            if len(found) == MOST_ITEMS:
                raise language_error("unroll", f"a comprehension makes more than {MOST_ITEMS} items", "use a loop")
            found.append(keep(make()))
            return
        clause = clauses[position]
        for item in items_of(evaluate(clause.iter), "a comprehension"):
            with scope.hidden_frame():
                for name, value in unpacked(clause.target, item):
                    scope.bind(name, value)
                if all(_holds(evaluate(test)) for test in clause.ifs):
                    turn(position + 1)

    turn(0)
    return found


def _holds(value: object) -> bool:
    """The condition of a comprehension."""
    value = plain(value)
    if is_runtime(value):
        raise language_error(
            "condition", "the condition of a comprehension must be known when the kernel is compiled", "use a loop"
        )
    return bool(value)


def added(items: Iterable[object], start: object = 0) -> object:
    """Python's `sum` of a kernel's values."""
    return functools.reduce(lambda a, b: binary("+", a, b), items, start)
