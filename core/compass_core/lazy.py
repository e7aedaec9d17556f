"""Modules that are imported when they are used: kernels build without NumPy."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__all__ = ["LazyModule", "np"]


class LazyModule:
    """A module imported at the first use of one of its attributes; later uses are plain look-ups."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attr: str) -> object:
        value = getattr(importlib.import_module(self._name), attr)
        self.__dict__[attr] = value
        return value


if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")
