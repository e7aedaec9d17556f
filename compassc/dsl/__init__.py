"""The API of kernel authors: `from compassc.dsl import BuildManager, script as S`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ..language import numpy_types

if TYPE_CHECKING:  # for editors and type checkers; at run time each is loaded at its first use
    from ..language.info import CompassInfo, hw_native_vdtype, resolve_dtype_alias
    from ..language.kernel_files import load_kernels
    from ..language.parser import parse
    from . import aiff, schedule, script, testing
    from .aiff import Aiff
    from .build_manager import BuildManager
    from .executor import Executor
    from .remote import get_rpc_session

_LAZY = {
    "Aiff": ".aiff",
    "BuildManager": ".build_manager",
    "CompassInfo": "compassc.language.info",
    "Executor": ".executor",
    "get_rpc_session": "compassc.dsl.remote",
    "hw_native_vdtype": "compassc.language.info",
    "load_kernels": "compassc.language.kernel_files",
    "parse": "compassc.language.parser",
    "resolve_dtype_alias": "compassc.language.info",
}
_MODULES = ("aiff", "schedule", "script", "testing")


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


numpy_types.announce()

__all__ = [
    "Aiff",
    "BuildManager",
    "CompassInfo",
    "Executor",
    "aiff",
    "get_rpc_session",
    "hw_native_vdtype",
    "load_kernels",
    "parse",
    "resolve_dtype_alias",
    "schedule",
    "script",
    "testing",
]
