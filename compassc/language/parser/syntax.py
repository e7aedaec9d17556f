"""Python syntax that has no form in a kernel: how it is called, and what to write instead."""

from __future__ import annotations

import ast

from compass_core.errors import CompassError

_NAMES = {
    "Continue": ("`continue`", "put the rest of the loop's body under an `if`"),
    "Try": ("`try`", "a kernel has no exceptions; test the values instead"),
    "Raise": ("`raise`", "a kernel has no exceptions; test the values instead"),
    "FunctionDef": ("a function inside of a kernel", "define it outside, with @S.prim_func or @S.macro"),
    "ClassDef": ("a class inside of a kernel", "define it outside"),
    "Global": ("`global`", "a kernel's names are its own; return a value or write to memory"),
    "Delete": ("`del`", "a variable ends with its block"),
    "Match": ("`match`", "use if and elif"),
    "ListComp": ("a list comprehension", "write the items out, or use a loop; outside of the kernel it is possible"),
    "SetComp": ("a set comprehension", "write the items out, or build it outside of the kernel"),
    "DictComp": ("a dict comprehension", "write the items out, or build it outside of the kernel"),
    "GeneratorExp": ("a generator expression", "use a loop"),
    "NamedExpr": ("`:=`", "write the assignment on a line of its own"),
    "Await": ("`await`", ""),
    "Yield": ("`yield`", "return a value or write to memory"),
    "YieldFrom": ("`yield from`", "return a value or write to memory"),
    "AsyncFor": ("`async for`", "use `for`"),
    "AsyncWith": ("`async with`", ""),
    "AsyncFunctionDef": ("a function inside of a kernel", "define it outside, with @S.prim_func or @S.macro"),
}


def unsupported(node: ast.AST) -> CompassError:
    """The error for a syntax node that the language does not have."""
    kind = type(node).__name__
    name, help = _NAMES.get(kind, (kind, ""))
    return CompassError(f"{name} is not supported in a kernel", code="syntax", help=help)
