"""The implementations of operations in PySim, joined to their declarations by name.

The meaning of a value operation is called as `f(*arrays, dtype=result, **options)`; with `Op.mask_aware` it takes `mask`
(bool array or None), and `r` if that is a parameter, and settles inactive lanes itself. That of a special operation has
its signature. A value operation without a meaning here is computed by its definition.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

from compass_core.arrays import Array
from compassc.ir.dtypes import DataType
from compassc.ops.core import Op

Meaning = Callable[..., Any]
MEANINGS: dict[str, Meaning] = {}
Function = TypeVar("Function", bound=Meaning)


def meaning(function: Function) -> Function:
    """Register the meaning of the operation of this name."""
    if function.__name__ in MEANINGS:
        raise ValueError(f"operation {function.__name__} has two meanings")
    MEANINGS[function.__name__] = function
    return function


@cache
def load() -> dict[str, Meaning]:
    """All meanings by name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return MEANINGS


def meaning_of(op: Op) -> Meaning:
    """The implementation of an operation. KeyError for a special operation without a meaning."""
    found = load().get(op.name)
    if found is None and op.definition is None:
        raise KeyError(f"S.{op.name} has no meaning in PySim")
    return found or by_definition(op)


def by_definition(op: Op) -> Meaning:
    """The meaning that a value operation has by its definition, which computes on matrices of one row per vector."""
    assert op.definition is not None
    definition = op.definition

    def run(*arrays: Array, dtype: DataType, **options: Any) -> Array:
        rows = [np.reshape(x, (1, -1)) for x in arrays]
        lanes = {k: v if v is None else np.reshape(v, (1, -1)) for k, v in options.items() if k in ("mask", "r")}
        out = definition(*rows, to=dtype, **{**options, **lanes})[0]
        found: Array = out if dtype.is_vector else out[0]
        return found

    return run
