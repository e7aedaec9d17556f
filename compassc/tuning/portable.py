"""Tasks as bytes, so that other processes can make programs of candidates: data alone, never code.

A kernel or template that a user's file defines is told by the place of that file, for processes of this machine. Elsewhere only
tasks go that are made of nothing but this package's classes; others stay with whoever has them.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

from compass_core.errors import CompassError
from compassc.dsl import load_kernels
from compassc.tuning.task import Task

_PACKAGES = frozenset({"compass_core", "compass_runtime", "compass_sim", "compassc", "numpy", "ml_dtypes"})
"""Packages that every worker has, besides Python's own."""


def packed(task: Task, machine: bool) -> bytes | None:
    """A task as bytes; None where it cannot go. `machine`: they stay on this machine, whose files can be named."""
    into = io.BytesIO()
    try:
        _Packer(into, machine).dump(task)
    except (pickle.PicklingError, TypeError, AttributeError, OSError):
        return None
    return into.getvalue()


@lru_cache(maxsize=4)
def unpacked(data: bytes) -> Task:
    """The task of these bytes, made once in a process. CompassError when a file that it names has changed."""
    task: Task = pickle.loads(data)
    return task


class _Packer(pickle.Pickler):
    def __init__(self, into: io.BytesIO, machine: bool) -> None:
        super().__init__(into, protocol=pickle.HIGHEST_PROTOCOL)
        self._machine = machine

    def reducer_override(self, one: object) -> Any:
        if (function := _decorated(one)) is not None:
            return self._named(one, function)
        if isinstance(one, (FunctionType, type)) and not _is_everywhere(one.__module__):
            raise pickle.PicklingError(f"{one.__qualname__} is a user's own")
        return NotImplemented

    def _named(self, one: object, function: FunctionType) -> Any:
        """An object of a file by the file's path and its name there."""
        if not self._machine or function.__globals__.get(function.__name__) is not one:
            raise pickle.PicklingError(f"{function.__name__} is known here alone")
        path = Path(function.__code__.co_filename)
        return _defined, (str(path.resolve()), function.__name__, _digest(path))


_DECORATED = {
    ("compassc.tuning.kernels", "Autotuned"): "factory",
    ("compassc.tuning.templates", "Template"): "function",
}
"""The classes, by module and name, whose objects are functions of users' files, and where they have the function."""


def _decorated(one: object) -> FunctionType | None:
    """The function of a user's file that an object was made of; None for other objects."""
    for (module, name), attribute in _DECORATED.items():
        if module in sys.modules and isinstance(one, getattr(sys.modules[module], name)):
            found: FunctionType = getattr(one, attribute)
            return found
    return None


def _is_everywhere(module: str) -> bool:
    root = module.partition(".")[0]
    return root in _PACKAGES or (root in sys.stdlib_module_names and root != "__main__")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _defined(path: str, name: str, digest: str) -> Any:
    """What a file defines under a name."""
    if _digest(Path(path)) != digest:
        raise CompassError(
            f"{path} has changed while it is tuned", code="tuning-task", help="start again, after the last change"
        )
    return vars(load_kernels(path).module)[name]
