"""Recursion in PySim: refused as the compiler does, before the kernel runs, by the text of its functions."""

from __future__ import annotations

import ast
import types
import weakref
from collections.abc import Iterator

from compass_core.errors import CompassError
from compass_core.reading import pyast

from ..language.functions import Macro, PyPrimFunc, captured_names
from ..language.source import definition, file_of, node_span

_CHECKED: weakref.WeakSet[types.FunctionType] = weakref.WeakSet()


def refuse_recursion(entry: types.FunctionType) -> None:
    """CompassError if a function that a kernel calls, at any depth, calls itself or the kernel."""
    if entry not in _CHECKED:
        _check([entry], set())
        _CHECKED.add(entry)


def _check(chain: list[types.FunctionType], done: set[types.FunctionType]) -> None:
    """Follow the calls of the last function of a chain of callers."""
    for func, node, file in _calls(chain[-1]):
        if func in chain:
            raise _recursion(chain, func, node, file)
        if func not in done:
            _check([*chain, func], done)
            done.add(func)


def _recursion(chain: list[types.FunctionType], func: types.FunctionType, node: ast.AST, file: str) -> CompassError:
    at, name = node_span(node, file), func.__name__
    if func is chain[0]:
        message = f"{chain[-1].__name__} calls the entry function {name}"
        return CompassError(message, at, code="calls-entry", help="move what both need into a third function")
    names = " -> ".join(f.__name__ for f in chain)
    return CompassError(f"recursion is not supported: {names} -> {name}", at, code="recursion", help="use a loop")


def _calls(func: types.FunctionType) -> Iterator[tuple[types.FunctionType, ast.AST, str]]:
    """The kernel functions that a function calls, itself or by macros, and where."""
    todo, seen = [func], {func}
    while todo:
        at = todo.pop()
        try:
            body, file, names = definition(at).body, file_of(at), captured_names(at)
        except CompassError:  # no source
            continue
        for node in (n for n in pyast.walk(body) if isinstance(n, ast.Call)):
            called = _meant(node.func, names)
            if isinstance(called, PyPrimFunc):
                yield called.py_func, node, file
            elif isinstance(called, Macro) and called.py_func not in seen:
                seen.add(called.py_func)
                todo.append(called.py_func)


def _meant(node: ast.expr, names: dict[str, object]) -> object:
    """The object behind a name, or behind a name in a module."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    owner = _meant(node.value, names) if isinstance(node, ast.Attribute) else None
    return getattr(owner, node.attr, None) if isinstance(owner, types.ModuleType) else None  # type: ignore[attr-defined]
