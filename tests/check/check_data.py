"""Arguments of the kernels in `kernels/`."""

from __future__ import annotations

from typing import Any

import numpy as np


def ints(*shape: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """0, 1, 2, ... in this shape."""
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


def zeros(*shape: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Zeros in this shape, for an output."""
    return np.zeros(shape, dtype=np.int32)
