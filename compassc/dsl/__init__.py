"""What kernel authors import: `from compassc.dsl import BuildManager, script as S`."""

from __future__ import annotations

import importlib
from typing import Any

from . import numpy_types

_LAZY = {
    "Aiff": ".aiff",
    "BuildManager": ".build_manager",
    "CompassInfo": ".info",
    "Executor": ".executor",
    "get_rpc_session": ".remote",
    "hw_native_vdtype": ".info",
    "load_kernels": ".loader",
    "parse": ".script.parser",
    "resolve_dtype_alias": ".info",
}
_MODULES = ("aiff", "schedule", "script", "testing")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


numpy_types.announce()

__all__ = list(_LAZY) + list(_MODULES)
