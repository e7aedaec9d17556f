"""Operators of ONNX, each declared by the function that makes its layers.

    @operator("Softmax", since=13)
    def softmax(b: Building, x: Value, *, axis: int = -1) -> Value: ...

Parameters after `b` are the node's inputs: `Value` is any tensor, `Constant` one whose content must be known at import,
`*xs` any number; a default says that an input may be missing. Keyword parameters are the attributes with their
defaults. `since` is the opset from which on the function holds: of several the newest not above the model's is taken.
What a function does not take is refused, never ignored.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from compassc.importers.values import Array

Constant = Array
"""An input whose content must be known at import."""
Handler = Callable[..., Any]
IGNORED = frozenset({"consumed_inputs"})
"""Attributes that never meant anything to results."""


@dataclass(frozen=True)
class Input:
    """An input of a node. `constant`: its content must be known."""

    name: str
    constant: bool
    optional: bool


@dataclass(frozen=True)
class Operator:
    """What is done with an operator from an opset on. `partly`: which part of its forms, "" for all.

    `attributes` None: the function takes any.
    """

    name: str
    domain: str
    since: int
    handler: Handler
    inputs: tuple[Input, ...]
    variadic: bool
    attributes: tuple[str, ...] | None
    required: tuple[str, ...]
    partly: str = ""


OPERATORS: dict[tuple[str, str], list[Operator]] = {}
"""Declared operators by (domain, name), oldest first; filled by `operators`."""
CONSTANT_ONLY: set[tuple[str, str]] = set()
"""Operators all of whose inputs must be known, by (domain, name)."""
REFUSED: dict[tuple[str, str], str] = {}
"""Why operators are not supported, by (domain, name)."""


def operator(*names: str, since: int = 1, domain: str = "", partly: str = "") -> Callable[[Handler], Handler]:
    """Declares the function that makes the layers of operators."""

    def declare(handler: Handler) -> Handler:
        made = _signature(handler)
        for name in names:
            listed = OPERATORS.setdefault((domain, name), [])
            listed.append(Operator(name, domain, since, handler, *made, partly=partly))
            listed.sort(key=lambda o: o.since)
        return handler

    return declare


def constant_only(*names: str, domain: str = "") -> None:
    """Declares operators that are computed at import, and never become layers."""
    CONSTANT_ONLY.update((domain, name) for name in names)


def refuse(reason: str, *names: str, domain: str = "") -> None:
    """Declares operators as not supported, with the reason."""
    REFUSED.update({(domain, name): reason for name in names})


def _signature(handler: Handler) -> tuple[tuple[Input, ...], bool, tuple[str, ...] | None, tuple[str, ...]]:
    inputs, attributes, required, variadic, anything = [], [], [], False, False
    for p in list(inspect.signature(handler).parameters.values())[1:]:
        if p.kind is p.KEYWORD_ONLY:
            attributes.append(p.name)
            if p.default is p.empty:
                required.append(p.name)
        elif p.kind is p.VAR_POSITIONAL:
            variadic = True
        elif p.kind is p.VAR_KEYWORD:
            anything = True
        else:
            words = str(p.annotation)
            optional = p.default is not p.empty or words.endswith("| None")
            inputs.append(Input(p.name, words.startswith("Constant"), optional))
    return tuple(inputs), variadic, None if anything else tuple(attributes), tuple(required)


@cache
def operators() -> dict[tuple[str, str], list[Operator]]:
    """All declared operators."""
    from compassc.importers.onnx import operators as families

    for module in pkgutil.iter_modules(families.__path__):
        importlib.import_module(f"{families.__name__}.{module.name}")
    return OPERATORS


def select(domain: str, name: str, opset: int) -> Operator | None:
    """The declaration of an operator for a model's opset."""
    fitting: Iterable[Operator] = (o for o in reversed(operators().get((domain, name), [])) if o.since <= opset)
    return next(iter(fitting), None)
