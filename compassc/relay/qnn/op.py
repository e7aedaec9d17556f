"""Quantised operators: their builders, what registers lowerings of them, and how requantisation is done."""

from __future__ import annotations

from compassc.relay.builders import Builder, Builders
from compassc.relay.op import REGISTERED, registrar
from compassc.relay.ops.fixed_point import requantize_config

__all__ = ["register_qnn_canonicalize", "register_qnn_legalize", "requantize_config"]

register_qnn_legalize = registrar(REGISTERED["qnn_legalize"])
register_qnn_canonicalize = registrar(REGISTERED["qnn_canonicalize"])
_BUILDERS = Builders("qnn")


def __getattr__(name: str) -> Builder:
    if name.startswith("__"):
        raise AttributeError(name)
    return _BUILDERS.find(name)


def __dir__() -> list[str]:
    return sorted([*__all__, *dir(_BUILDERS)])
