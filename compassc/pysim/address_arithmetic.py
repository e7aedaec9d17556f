"""Addresses in one step: `a + off + i * 8` as an operation's pointer, the commonest expression of kernels.

Operator by operator it makes a value or a pointer each. Where the offsets are int32 variables and Python integers, and
no part of them leaves int32, the pointer is moved once by their sum; everything else is left to the operators, which
give the same pointer or an error. A load or store of one whole register there is done at once (`SHORT`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from compass_core.reading import pyast
from compassc.ir.dtypes import INT32
from compassc.ops.core import get

from .impl import pysim_impl
from .meanings.memory import AT
from .memory import PyPointer
from .values import PyVar

_SYMBOLS = {op: symbol for op, symbol in pyast.BINARY.items() if symbol in ("+", "-", "*")}
_LOW, _HIGH = INT32.range()
_MAX_LEAVES = 12


SHORT = {"vload": 1, "vstore": 2}
"""Operations done at once where they have so many arguments, of which the pointer is the last one."""


def moved(address: ast.expr, short: str = "") -> tuple[Callable[..., object], list[ast.expr]] | None:
    """A function of the parts of an address, and the parts; None if the expression is not a pointer plus offsets.

    `short`: the function does this operation there; its other argument comes first.
    """
    leaves: list[ast.expr] = []
    text = _text(address, leaves)
    if not isinstance(address, ast.BinOp) or not leaves or len(leaves) > _MAX_LEAVES:
        return None
    if not isinstance(address.op, (ast.Add, ast.Sub)):
        return None
    return _function(text, short), leaves


def _text(e: ast.expr, leaves: list[ast.expr]) -> str:
    """An expression with names for its leaves: `((x0 + x1) + (x2 * 8))`."""
    if isinstance(e, ast.BinOp) and type(e.op) in _SYMBOLS:
        left = _text(e.left, leaves)
        return f"({left} {_SYMBOLS[type(e.op)]} {_text(e.right, leaves)})"
    if isinstance(e, ast.Constant) and type(e.value) is int and _LOW <= e.value <= _HIGH:
        return str(e.value)
    leaves.append(e)
    return f"x{len(leaves) - 1}"


@cache
def _function(text: str, short: str) -> Callable[..., object]:
    """The function of an expression whose first leaf is the pointer, or of an operation there."""
    body: Any = pyast.parse(text, mode="eval").body
    names = sorted({n.id for n in ast.walk(body) if isinstance(n, ast.Name)}, key=lambda name: int(name[1:]))
    given = ["value"] * (SHORT[short] - 1) if short else []
    whole = f"return op({', '.join([*given, text])})" if short else f"return {text}"
    lines = [f"def {short or 'move'}({', '.join([*given, *names])}):", "    if type(x0) is PyPointer:"]
    for name in names[1:]:
        lines.append(f"        if type({name}) is PyVar and {name}.dtype is INT32: n{name} = int({name}.value)")
        lines.append(f"        elif type({name}) is int and {_LOW} <= {name} <= {_HIGH}: n{name} = {name}")
        lines.append(f"        else: {whole}")
    steps: list[str] = []
    conditions = list(_steps(body, steps))
    lines += [f"        if {' and '.join(conditions)}:"] if conditions else ["        if True:"]
    last = f"at({', '.join([*given, 'x0', ' '.join(steps)])})" if short else f"x0.moved({' '.join(steps)})"
    lines += [f"            return {last}", f"    {whole}"]
    scope: dict[str, object] = {"PyPointer": PyPointer, "PyVar": PyVar, "INT32": INT32}
    if short:
        scope.update(op=pysim_impl(get(short)), at=AT[short])
    exec(compile("\n".join(lines), "<PySim address>", "exec"), scope)  # noqa: S102  the text is made of names and numbers
    made = scope[short or "move"]
    assert callable(made)
    return made


def _steps(e: ast.expr, steps: list[str]) -> Iterator[str]:
    """Appends the terms that move the pointer, and gives what must hold for them to be exact."""
    while isinstance(e, ast.BinOp):
        term = _number(e.right)
        if isinstance(e.right, ast.BinOp):
            yield from (
                f"{_LOW} <= {_number(part)} <= {_HIGH}" for part in ast.walk(e.right) if type(part) is ast.BinOp
            )
        steps[:0] = ["-" if isinstance(e.op, ast.Sub) else "+", term]
        e = e.left


def _number(e: ast.expr) -> str:
    """An offset as an expression of Python integers."""
    if isinstance(e, ast.BinOp):
        return f"({_number(e.left)} {_SYMBOLS[type(e.op)]} {_number(e.right)})"
    return f"n{e.id}" if isinstance(e, ast.Name) else ast.unparse(e)
