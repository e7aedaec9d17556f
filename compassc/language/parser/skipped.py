"""Calls that are for PySim: there they stop or show values, compiled there is no code of them, nor of their arguments. So
arguments that change something are refused: without them the compiled kernel would compute something else."""

from __future__ import annotations

import ast
import dis
import inspect
from collections.abc import Callable

from compass_core.errors import CompassError

from ...ops.core import REGISTRY, Op
from ..functions import Macro, PyPrimFunc
from ..source import SET_TRACE, is_user_file
from .syntax import unsupported

SKIPPED = ("breakpoint", "print", *SET_TRACE)
_CHANGING = frozenset(
    "append extend insert pop remove clear sort reverse update setdefault popitem add discard".split()
)
"""Methods of Python's containers that change them."""


def check_skipped(call: ast.Call, value_of: Callable[[ast.expr], object]) -> None:
    """Refuse a call of SKIPPED that would change something. `value_of`: what the kernel knows of an expression."""
    for node in ast.walk(call):
        if isinstance(node, ast.NamedExpr):
            raise unsupported(node)
        if isinstance(node, ast.Call) and node is not call and _changes(node.func, value_of):
            name, done = ast.unparse(node.func), ast.unparse(call.func)
            raise CompassError(
                f"{name}(...) in the arguments of {done}(...) may change something, but compiled kernels skip both",
                code="builtin",
                help=f"write {name}(...) on a line of its own and give its value to {done}",
            )


def _changes(written: ast.expr, value_of: Callable[[ast.expr], object]) -> bool:
    if isinstance(written, ast.Attribute) and written.attr in _CHANGING:
        return True
    try:
        return _acts(value_of(written), set())
    except CompassError:  # of values of the run, which only PySim has
        return False


def _acts(called: object, seen: set[object]) -> bool:
    """Whether calling it may do more than give a value: kernel functions, operations with an effect, and functions of the
    user that call one or store elements."""
    if isinstance(called, (PyPrimFunc, Macro)) or called is next:
        return True
    op = getattr(called, "op", None)
    if isinstance(op, Op):
        return _effects(op)
    if not (inspect.isfunction(called) and is_user_file(called.__code__.co_filename)) or called in seen:
        return False
    seen.add(called)
    names = called.__code__.co_names
    return (
        any(i.opname == "STORE_SUBSCR" for i in dis.get_instructions(called))
        or any(_effects(REGISTRY.get(n)) for n in names)
        or any(_acts(called.__globals__.get(n), seen) for n in names)
    )


def _effects(op: Op | None) -> bool:
    return op is not None and op.effect not in ("pure", "read")
