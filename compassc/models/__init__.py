"""Models as Python objects: `compile` builds one, `Model` is called with arrays; `build` has the stages of a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compassc.models.model import Model, compile

__all__ = ["Model", "compile"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from compassc.models import model

    return getattr(model, name)
