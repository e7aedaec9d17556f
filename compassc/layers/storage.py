"""How the graph's data types are stored in NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

STORED = {"aligned_int4": "int8", "aligned_uint4": "uint8", "aligned_int12": "int16", "aligned_uint12": "uint16"}
"""Types that are stored in the low bits of a wider one."""


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy type that stores a data type of the graph; ml_dtypes has the ones NumPy lacks."""
    name = STORED.get(name, name)
    if name == "bfloat16" or name.startswith("float8"):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)
