"""Quantised operators: their builders (`relay.qnn.conv2d`), passes that lower them (`transform`), and the lowerings."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from compassc.relay.builders import Builders

_BUILDERS, _MODULES = Builders("qnn"), ("op", "transform")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name.startswith("__"):
        raise AttributeError(name)
    found: Callable[..., Any] = getattr(_BUILDERS, name)
    return found


def __dir__() -> list[str]:
    return sorted([*_MODULES, *dir(_BUILDERS)])
