"""The vendor's import names, mapped onto this package, so that kernels written for it run unchanged.

`install()` makes `import tvm.compass.dsl`, `tvm.aipu` and their older spellings find our modules. It does nothing where
a real `tvm` package is installed and `force` is not given.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

ALIASES = {
    "tvm.compass.dsl": "compassc.dsl",
    "tvm.compass.dsl.script": "compassc.dsl.script",
    "tvm.compass.dsl.aiff": "compassc.dsl.aiff",
    "tvm.compass.dsl.build_manager": "compassc.dsl.build_manager",
    "tvm.compass.dsl.cc": "compassc.dsl.cc",
    "tvm.compass.dsl.schedule": "compassc.dsl.schedule",
    "tvm.compass.dsl.testing": "compassc.dsl.testing",
    "tvm.aipu.script": "compassc.dsl.script",
    "tvm.aipu.tir": "compassc.dsl",
}
PACKAGES = ("tvm", "tvm.compass", "tvm.aipu")


class _Loader(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        module.__path__ = []  # a package: its submodules are looked up through the finder
        return module

    def exec_module(self, module: ModuleType) -> None:
        target = ALIASES.get(module.__name__)
        if target is not None:
            module.__getattr__ = lambda name: getattr(importlib.import_module(target), name)  # type: ignore[method-assign]
        else:
            module.__getattr__ = lambda name: _child(module.__name__, name)  # type: ignore[method-assign]


def _child(package: str, name: str) -> Any:
    full = f"{package}.{name}"
    if full in ALIASES or full in PACKAGES:
        return importlib.import_module(full)
    raise AttributeError(f"{full} is not part of the Compass DSL that compassc provides")


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name in ALIASES or name in PACKAGES:
            return importlib.machinery.ModuleSpec(name, _Loader(), is_package=True)
        return None


_FINDER = _Finder()


def install(force: bool = False) -> None:
    """Make the vendor's import names available in this process."""
    if _FINDER in sys.meta_path:
        return
    if not force and importlib.util.find_spec("tvm") is not None:
        return
    sys.meta_path.append(_FINDER)
