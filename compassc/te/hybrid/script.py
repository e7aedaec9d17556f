"""The decorator of hybrid scripts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType

from compassc.ir.expr_op import ExprOp
from compassc.te.hybrid.parser import parse
from compassc.te.hybrid.runtime import HYBRID_GLOBALS, Value
from compassc.te.tensor import Tensor


def script(function: Callable[..., Value]) -> Callable[..., Value]:
    """A function that gives tensors when it is called with tensors and variables (its statements are parsed, `return` says
    which), and runs as Python when it is called with arrays and numbers."""

    @functools.wraps(function)
    def run(*args: Value) -> Value:
        if any(map(_is_symbolic, args)):
            return parse(function, args)
        assert isinstance(function, FunctionType)
        names = {**function.__globals__, **HYBRID_GLOBALS}
        plain = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
        return plain(*args)

    return run


def _is_symbolic(given: object) -> bool:
    if isinstance(given, (list, tuple)):
        return any(map(_is_symbolic, given))
    return isinstance(given, (Tensor, ExprOp))
