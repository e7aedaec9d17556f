"""`Array`: an array of NumPy of any shape and data type, for annotations; NumPy is not loaded for its sake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]
else:
    Array = Any
