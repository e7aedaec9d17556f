"""Models as Python objects: `compile` builds one, `Model` is called with arrays."""

from compassc.models.model import Model, compile

__all__ = ["Model", "compile"]
