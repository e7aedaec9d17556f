"""Compiling the kernels of the operator library."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from compassc.oplib import families
from compassc.oplib.layer import Choice


class Workshop:
    """Compiles kernels, each variant once."""

    def __init__(self, folder: Path, target: str) -> None:
        self.folder = folder
        self.target = target
        self._objects: dict[str, Path] = {}

    def object_of(self, choice: Choice) -> Path:
        """The object file of a kernel variant."""
        if choice.name not in self._objects:
            from compassc.dsl import BuildManager

            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder.absolute() / f"{choice.name}.o"
            BuildManager(self.target).gen_op_lib(choice.kernel, choice.name, str(path))
            self._objects[choice.name] = path
        return self._objects[choice.name]


def load_families() -> None:
    """Fills OPERATORS: imports every family."""
    for module in pkgutil.iter_modules(families.__path__):
        importlib.import_module(f"{families.__name__}.{module.name}")
