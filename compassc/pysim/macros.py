"""Macro calls that the kernel's text does not show: through another name, by a helper, with `*args`.

The body runs as a function of its own. That equals pasting it (`paste.py`) as long as it neither assigns to its
parameters nor returns; a macro that does is refused, because Python cannot change its caller's variables.
"""

from __future__ import annotations

import ast
import types
from functools import cache
from typing import TYPE_CHECKING

from compass_core.errors import CompassError

from ..language.source import definition, file_of, node_span
from .assign import with_kernel_assignments

if TYPE_CHECKING:
    from ..language.functions import Macro


@cache
def _checked(macro: Macro) -> types.FunctionType:
    """The macro's function with the kernel's assignment rules. CompassError for a body that PySim cannot paste."""
    node, file = definition(macro.py_func), file_of(macro.py_func)
    params = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    for inner in ast.walk(node):
        stored = isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store) and inner.id in params
        if stored or isinstance(inner, ast.Return):
            what = "assigns to its own parameter" if stored else "returns from its caller"
            raise CompassError(
                f"PySim cannot run macro {macro.__name__}, which {what}, where it is not called by its own name",
                node_span(inner, file),
                code="macro",
                help=f"write {macro.__name__}(...) as a statement of the kernel, or make it a sub-function",
            )
    return with_kernel_assignments(macro.py_func)


def run_macro(
    macro: Macro, args: tuple[object, ...], kwargs: dict[str, object], caller_names: dict[str, object]
) -> None:
    """Run a macro's body; one that is not hygienic sees `caller_names`, the variables of the call site."""
    func = _checked(macro)
    names = macro.captured if macro.hygienic else {**func.__globals__, **caller_names}
    closed = types.FunctionType(func.__code__, names, func.__name__, func.__defaults__, func.__closure__)
    closed.__kwdefaults__ = func.__kwdefaults__
    closed(*args, **kwargs)
