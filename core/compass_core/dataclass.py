"""`dataclass`, as that of `dataclasses`, for classes that a program may never make an object of.

Python's own compiles up to six methods per class where the class is defined, which was a sixth of the start of a build. This
one compiles each method when it is first looked up. Classes mean the same; there is no order, and there are no `InitVar`s.
Their fields are dataclass fields: `fields`, `replace` and `asdict` of `dataclasses` take them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING, cast

__all__ = ["dataclass"]


class _Factory:
    """The default of a parameter whose field has a factory."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Factory()


class _Later:
    """A method of a class that is compiled, and takes this object's place, when it is first looked up."""

    __slots__ = ("frozen", "name", "owner")

    def __init__(self, owner: type, name: str, frozen: bool) -> None:
        self.owner, self.name, self.frozen = owner, name, frozen

    def __get__(self, instance: object, owner: type) -> object:
        names: dict[str, object] = {"_class_": self.owner, "_put_": object.__setattr__, "_unset_": _UNSET}
        names |= {"_frozen_": dataclasses.FrozenInstanceError, "__name__": self.owner.__module__}
        lines = _TEXTS[self.name](self.owner, self.frozen, names)
        exec("\n    ".join(lines), names)  # noqa: S102 - text that the functions below made of fields
        method = cast(FunctionType, names[self.name])
        method.__qualname__ = f"{self.owner.__qualname__}.{self.name}"
        if self.name == "__repr__":
            method = cast(FunctionType, recursive_repr()(method))
        if self.name == "__init__":
            types: dict[str, object] = {f.name: f.type for f in dataclasses.fields(self.owner) if f.init}
            method.__annotations__ = types | {"return": None}
        if vars(self.owner).get(self.name) is self:
            setattr(self.owner, self.name, method)
        return method.__get__(instance, owner)


def _init(cls: type, frozen: bool, names: dict[str, object]) -> list[str]:
    """The text of the constructor; `names` gets what it refers to."""
    positional, keywords, body = ["self"], ["*"], []
    for f in dataclasses.fields(cls):
        value = f.name
        if f.default_factory is not dataclasses.MISSING:
            names[f"_default_{f.name}"], value = f.default_factory, f"_default_{f.name}()"
        if f.init:
            taken = f.name
            if f.default_factory is not dataclasses.MISSING:
                taken, value = f"{f.name}=_unset_", f"{value} if {f.name} is _unset_ else {f.name}"
            elif f.default is not dataclasses.MISSING:
                names[f"_default_{f.name}"], taken = f.default, f"{f.name}=_default_{f.name}"
            (keywords if f.kw_only else positional).append(taken)
        if f.init or f.default_factory is not dataclasses.MISSING:
            body.append(f"_put_(self, {f.name!r}, {value})" if frozen else f"self.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    taken = ", ".join(positional + keywords * (len(keywords) > 1))
    return [f"def __init__({taken}):", *(body or ["pass"])]


def _eq(cls: type, frozen: bool, names: dict[str, object]) -> list[str]:
    compared = [f.name for f in dataclasses.fields(cls) if f.compare]
    return [
        "def __eq__(self, other):",
        "if other.__class__ is not self.__class__: return NotImplemented",
        f"return {_values('self', compared)} == {_values('other', compared)}",
    ]


def _hash(cls: type, frozen: bool, names: dict[str, object]) -> list[str]:
    counted = [f.name for f in dataclasses.fields(cls) if (f.compare if f.hash is None else f.hash)]
    return ["def __hash__(self):", f"return hash({_values('self', counted)})"]


def _repr(cls: type, frozen: bool, names: dict[str, object]) -> list[str]:
    shown = ", ".join(f"{f.name}={{self.{f.name}!r}}" for f in dataclasses.fields(cls) if f.repr)
    return ["def __repr__(self):", f"return self.__class__.__qualname__ + f'({shown})'"]


def _setattr(cls: type, frozen: bool, names: dict[str, object]) -> list[str]:
    return [
        "def __setattr__(self, name, value):",
        f"if type(self) is _class_ or name in {[f.name for f in dataclasses.fields(cls)]}:",
        "    raise _frozen_(f'cannot assign to field {name!r}')",
        "super(_class_, self).__setattr__(name, value)",
    ]


def _delattr(cls: type, frozen: bool, names: dict[str, object]) -> list[str]:
    return [
        "def __delattr__(self, name):",
        f"if type(self) is _class_ or name in {[f.name for f in dataclasses.fields(cls)]}:",
        "    raise _frozen_(f'cannot delete field {name!r}')",
        "super(_class_, self).__delattr__(name)",
    ]


def _values(item: str, names: list[str]) -> str:
    return "(" + "".join(f"{item}.{name}, " for name in names) + ")"


_TEXTS: dict[str, Callable[[type, bool, dict[str, object]], list[str]]] = {
    "__init__": _init,
    "__eq__": _eq,
    "__hash__": _hash,
    "__repr__": _repr,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
}


def _made(cls: type, frozen: bool, eq: bool, repr: bool, more: dict[str, bool]) -> type:
    """The class with its fields and with methods that come later."""
    own = vars(cls)
    if frozen and ("__setattr__" in own or "__delattr__" in own):
        raise TypeError(f"{cls.__name__} is frozen, and says itself how it is assigned to")
    is_hashed = own.get("__hash__") is not None or ("__hash__" in own and "__eq__" not in own)
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else Python's makes one of the signature, at some cost
    made: type = dataclasses.dataclass(init=False, repr=False, eq=False, **more)(cls)
    wanted = {"__init__": True, "__eq__": eq, "__repr__": repr}
    names = [name for name, is_wanted in wanted.items() if is_wanted and name not in vars(made)]
    names += ["__setattr__", "__delattr__"] * frozen
    later = {name: _Later(made, name, frozen) for name in names}
    hashes = {"__hash__": _Later(made, "__hash__", frozen) if frozen else None} if eq and not is_hashed else {}
    for name, method in {**later, **hashes}.items():
        setattr(made, name, method)
    return made


if TYPE_CHECKING:
    from dataclasses import dataclass  # type checkers know what that one does
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, **more):
        """Decorator, with or without options, that makes a class of its annotated fields."""
        if cls is None:
            return lambda cls: _made(cls, frozen, eq, repr, more)
        return _made(cls, frozen, eq, repr, more)
