"""Type inference: types of all expressions of a program, from annotations, constants and the relations of operators.

Three steps: `rules` give each expression a type, holes (`IncompleteType`) where it is not known yet; `solver` and `unify` find
what holes are; `rebuild` writes types into the program. Which cases a `Match` leaves out is in `patterns`, kinds of types
in `kinds`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compass_core.errors import together
from compassc.relay import diagnostics
from compassc.relay.expr import Expr, Function
from compassc.relay.infer.errors import TypeInferenceError
from compassc.relay.infer.rebuild import Rebuild
from compassc.relay.infer.rules import Definitions, Typing
from compassc.relay.types import Type
from compassc.relay.visit import children

__all__ = ["Definitions", "TypeInferenceError", "infer_functions", "infer_local", "types_within"]


def infer_functions(functions: Mapping[str, Function], definitions: Definitions) -> dict[str, Function]:
    """The functions of a module with types on every expression. TypeInferenceError, or several at once."""
    typing = Typing(definitions)
    for f in functions.values():
        typing.type_of(f)
    typing.solver.solve()
    _raise(typing.solver.errors)
    typing.check_matches()
    rebuild = Rebuild(typing)
    made = {name: rebuild.expression(f) for name, f in functions.items()}
    _raise(rebuild.errors)
    return {name: f for name, f in made.items() if isinstance(f, Function)}


def infer_local(e: Expr, definitions: Definitions) -> Type:
    """The type of an expression whose parts have their types already; it is noted on it."""
    typing = Typing(definitions)
    typing.types.update({c: c.checked_type_ for c in children(e) if c.checked_type_ is not None})
    typing.type_of(e)
    typing.solver.solve()
    _raise(typing.solver.errors)
    found = typing.resolved(e)
    e.typed(found)
    return found


def types_within(root: Expr, definitions: Definitions) -> Callable[[Expr], Type]:
    """A function that gives the types of a program and its parts, with holes where they are not known; they are noted
    nowhere. TypeInferenceError, or several at once."""
    typing = Typing(definitions)

    def type_of(e: Expr) -> Type:
        typing.type_of(e)
        typing.solver.solve()
        _raise(typing.solver.errors)
        return typing.resolved(e)

    type_of(root)
    return type_of


def _raise(errors: list[TypeInferenceError]) -> None:
    if errors:
        diagnostics.show(errors)
        raise together(errors)
