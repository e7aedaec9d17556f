"""What kernel authors import: `from compassc.dsl import BuildManager, script as S`."""

from __future__ import annotations

import importlib
from typing import Any

_LAZY = {
    "BuildManager": ".build_manager",
    "Executor": ".executor",
    "load_kernels": ".loader",
    "parse": ".script.parser",
    "script": "",
}


def __getattr__(name: str) -> Any:
    if name == "script":
        return importlib.import_module(__name__ + ".script")
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = list(_LAZY)
