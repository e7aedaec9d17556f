"""`np.dtype("bfloat16")`: NumPy knows the type as soon as both NumPy and this is imported, in either order.

ml_dtypes adds the type when it is imported, and imports NumPy. A kernel file that has no use for NumPy shall not wait for
it, so ml_dtypes is imported behind NumPy, whenever that is.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType


class _Behind(importlib.abc.Loader):
    """Loads NumPy by its own loader, then ml_dtypes."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader  # resources are asked of it
        self._loader.exec_module(module)
        importlib.import_module("ml_dtypes")


class _Finder(importlib.abc.MetaPathFinder):
    """Waits for NumPy, once."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "numpy":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Behind(spec.loader)
        return spec


def announce() -> None:
    """Make the types of ml_dtypes known to NumPy, now or when it is imported."""
    if "numpy" in sys.modules:
        importlib.import_module("ml_dtypes")
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
