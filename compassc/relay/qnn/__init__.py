"""Quantised operators: their builders (`relay.qnn.conv2d`), passes that lower them (`transform`), and the lowerings."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from compassc.relay.builders import Builder, Builders

_BUILDERS, _MODULES = Builders("qnn"), ("op", "transform")


def __getattr__(name: str) -> ModuleType | Builder:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name.startswith("__"):
        raise AttributeError(name)
    return _BUILDERS.find(name)


def __dir__() -> list[str]:
    return sorted([*_MODULES, *dir(_BUILDERS)])
