"""The compiler of the Compass DSL. Kernel authors import from `compassc.dsl`; `compassc.compile` builds a model. Importing
this package does no work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compass_core import VERSION as __version__

if TYPE_CHECKING:
    from compassc.models import Model, compile

__all__ = ["Model", "__version__", "compile"]


def __getattr__(name: str) -> Any:
    """What `compassc.models` has, imported when it is asked for."""
    if name not in ("Model", "compile"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from compassc import models

    return getattr(models, name)
