"""Operators of a framework, each declared by the function that makes its layers.

    @operator("Softmax", since=13)
    def softmax(b: Building, x: Value, *, axis: int = -1) -> Value: ...

Parameters after `b` are the node's inputs: `Value` is any tensor, `Constant` one whose content must be known at import,
`*xs` any number; a default says that an input may be missing. Keyword parameters are the attributes with their
defaults. `since` is the version from which on the function holds: of several the newest not above the model's is taken.
What a function does not take is refused, never ignored.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc.importers.values import NotConstant, Refused

Constant = Array
"""An input whose content must be known at import."""
Handler = Callable[..., Any]
Declared = TypeVar("Declared", bound=Handler)
Group = type[tuple[Any, ...]]
Key = tuple[str, str]
"""Domain and name of an operator."""


@dataclass(frozen=True)
class Input:
    """An input of a node. `constant`: its content must be known."""

    name: str
    constant: bool
    optional: bool


@dataclass(frozen=True)
class Operator:
    """What is done with an operator from a version on. `partly`: which part of its forms, "" for all.

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

    def arguments(self, inputs: Sequence[Any]) -> list[Any]:
        """What the function gets for a node's inputs. Refused when one is missing, too many, or has to be known."""
        if not self.variadic:
            if any(i is not None for i in inputs[len(self.inputs) :]):
                raise Refused(f"its inputs after the first {len(self.inputs)} are not supported")
            inputs = [*inputs, *[None] * (len(self.inputs) - len(inputs))][: len(self.inputs)]
        arguments: list[Any] = []
        unknown: dict[str, str] = {}
        for i, item in enumerate(inputs):
            spec = self.inputs[i] if i < len(self.inputs) else None
            if item is None and spec is not None and not spec.optional:
                raise Refused(f"its input '{spec.name}' is missing")
            if item is not None and spec is not None and spec.constant:
                if item.array is None:
                    unknown[item.name] = spec.name
                item = item.array
            arguments.append(item)
        if unknown:
            listed = " and ".join(f"'{name}'" for name in unknown.values())
            raise NotConstant(f"its input {listed} must be known at import", list(unknown))
        return arguments

    def check_attributes(self, given: Mapping[str, object]) -> None:
        """Refused when the function does not take one, or needs one that is not there."""
        for name in given:
            if self.attributes is not None and name not in self.attributes:
                raise Refused(f"its attribute '{name}' is not supported")
        for name in self.required:
            if name not in given:
                raise Refused(f"its attribute '{name}' is missing")


@dataclass
class Table:
    """The operators of a framework. `package`: whose modules declare them, loaded when they are asked for; `common`: a table whose
    operators are this one's, too."""

    package: str
    common: Table | None = None
    groups: Sequence[Group] = ()
    """Attributes that functions take as one, by a keyword parameter that has the group as its type."""
    listed: dict[Key, list[Operator]] = field(default_factory=dict)
    """Oldest first."""
    refused: dict[Key, str] = field(default_factory=dict)
    """Why operators are not supported."""
    _complete: bool = False

    def operator(
        self,
        *names: str,
        since: int = 1,
        domain: str = "",
        partly: str = "",
        attributes: tuple[str, ...] | None = None,
    ) -> Callable[[Declared], Declared]:
        """Declares the function that makes the layers of operators. `attributes`: those that it takes as `**given`."""

        def declare(handler: Declared) -> Declared:
            inputs, variadic, named, required = _signature(handler, self.groups)
            taken = named if attributes is None else attributes
            for name in names:
                listed = self.listed.setdefault((domain, name), [])
                called = _with_groups(handler, self.groups)
                listed.append(Operator(name, domain, since, called, inputs, variadic, taken, required, partly))
                listed.sort(key=lambda o: o.since)
            return handler

        return declare

    def refuse(self, reason: str, *names: str, domain: str = "") -> None:
        """Declares operators as not supported, with the reason."""
        self.refused.update({(domain, name): reason for name in names})

    def operators(self) -> dict[Key, list[Operator]]:
        """All declared operators."""
        if not self._complete:
            families = importlib.import_module(self.package)
            for module in pkgutil.iter_modules(families.__path__):
                importlib.import_module(f"{self.package}.{module.name}")
            common = {} if self.common is None else self.common.operators()
            for key, shared in common.items():
                listed = sorted([*shared, *self.listed.get(key, [])], key=lambda o: o.since)
                assert len({o.since for o in listed}) == len(listed), f"{key[1]} is declared twice"
                self.listed[key] = listed
            self._complete = True
        return self.listed

    def select(self, domain: str, name: str, version: int) -> Operator | None:
        """The declaration of an operator for a model's version of the domain."""
        fitting = (o for o in reversed(self.operators().get((domain, name), [])) if o.since <= version)
        return next(fitting, None)


def _grouped(handler: Handler, groups: Sequence[Group]) -> dict[str, Group]:
    """The parameters of a function that are attributes in one."""
    named = {g.__name__: g for g in groups}
    listed = inspect.signature(handler).parameters.values()
    return {p.name: named[str(p.annotation)] for p in listed if str(p.annotation) in named}


def _with_groups(handler: Handler, groups: Sequence[Group]) -> Handler:
    """The function as one of the attributes themselves."""
    found = _grouped(handler, groups)

    def called(*arguments: object, **attributes: object) -> Any:
        for name, group in found.items():
            fields: Sequence[str] = group.__dict__["_fields"]
            attributes[name] = group(**{f: attributes.pop(f) for f in fields if f in attributes})
        return handler(*arguments, **attributes)

    return called if found else handler


def _signature(
    handler: Handler, groups: Sequence[Group]
) -> tuple[tuple[Input, ...], bool, tuple[str, ...] | None, tuple[str, ...]]:
    inputs, attributes, required, variadic, anything = [], [], [], False, False
    grouped = _grouped(handler, groups)
    for p in list(inspect.signature(handler).parameters.values())[1:]:
        if p.name in grouped:
            fields = grouped[p.name].__dict__["_fields"]
            attributes += fields
            required += [f for f in fields if f not in grouped[p.name].__dict__["_field_defaults"]]
        elif p.kind is p.KEYWORD_ONLY:
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
