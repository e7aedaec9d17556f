"""`Array`: an array of NumPy of any shape and data type, and `NumpyDType`: such a type, for annotations; NumPy is not loaded for
their sake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    NumpyDType = np.dtype[Any]
    Array = np.ndarray[Any, NumpyDType]
else:
    NumpyDType = Array = Any


def base_of(array: Array) -> Array:
    """The array that owns a view's memory."""
    import numpy as np

    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def has_real_numbers(array: Array) -> bool:
    """Whether the elements are truth values, whole numbers or floats, those of ml_dtypes among them."""
    import numpy as np

    return array.dtype.kind in "biuf" or (array.dtype.kind == "V" and array.dtype.type is not np.void)


def content_of(array: Array) -> memoryview:
    """The bytes of an array, without a copy where it is contiguous."""
    import numpy as np

    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
