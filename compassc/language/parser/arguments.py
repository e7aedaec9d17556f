"""Arguments that do not suit the parameters of what is called."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable

from compass_core.errors import CompassError, Note


class ArgumentError(CompassError):
    """An argument of a sub-function call that does not suit its parameter; positions count from 1."""

    def __init__(self, message: str, param: str, position: int, declared: Note, help: str) -> None:
        super().__init__(message, code="argument-type", notes=(declared,), help=help)
        self.param, self.position = param, position

    def node(self, call: ast.Call) -> ast.expr:
        """The syntax node of the argument; the whole call if `*args` or `**kwargs` hide which node it is."""
        named = [k.value for k in call.keywords if k.arg == self.param]
        given = call.args[: self.position]
        if len(given) == self.position and not any(isinstance(a, ast.Starred) for a in given):
            return given[-1]
        return named[0] if named else call


def wrong_arguments(
    func: Callable[..., object], args: list[object], kwargs: dict[str, object], name: str
) -> CompassError | None:
    """What is wrong with the arguments of one of the language's own functions; None when they suit its signature."""
    signature = inspect.signature(func)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as e:
        return CompassError(f"{name}: {e}", code="arguments", help=f"its signature is {name}{bare(signature)}")
    return None


def bare(signature: inspect.Signature) -> str:
    """A signature as a user calls it, without annotations."""
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(parameters))
