"""Python syntax that has no form in a kernel: how it is called, and what to write instead."""

from __future__ import annotations

import ast

from compass_core.errors import CompassError

_NAMES = {
    "Try": ("`try`", "a kernel has no exceptions; test the values instead"),
    "Raise": ("`raise`", "a kernel has no exceptions; test the values instead"),
    "FunctionDef": ("a function inside of a kernel", "define it outside, with @S.prim_func or @S.macro"),
    "ClassDef": ("a class inside of a kernel", "define it outside"),
    "Global": ("`global`", "a kernel's names are its own; return a value or write to memory"),
    "Delete": ("`del`", "a variable ends with its block"),
    "Match": ("`match`", "use if and elif"),
    "NamedExpr": ("`:=`", "write the assignment on a line of its own"),
    "Await": ("`await`", ""),
    "Yield": ("`yield`", "return a value or write to memory"),
    "YieldFrom": ("`yield from`", "return a value or write to memory"),
    "AsyncFor": ("`async for`", "use `for`"),
    "AsyncWith": ("`async with`", ""),
    "AsyncFunctionDef": ("a function inside of a kernel", "define it outside, with @S.prim_func or @S.macro"),
}


def leaves_loop(body: list[ast.stmt]) -> bool:
    """Whether a loop's body has a break of that loop, or a return."""
    for s in body:
        if isinstance(s, (ast.Break, ast.Return)):
            return True
        inner = [*getattr(s, "body", ()), *getattr(s, "orelse", ())]
        in_loop = isinstance(s, (ast.For, ast.While))
        if leaves_loop([x for x in inner if not in_loop]) or (in_loop and _returns(inner)):
            return True
    return False


def _returns(body: list[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Return) for s in body for n in ast.walk(s))


def unsupported(node: ast.AST) -> CompassError:
    """The error for a syntax node that the language does not have."""
    kind = type(node).__name__
    name, help = _NAMES.get(kind, (kind, ""))
    return CompassError(f"{name} is not supported in a kernel", code="syntax", help=help)
