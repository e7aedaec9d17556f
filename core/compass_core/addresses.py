"""Where arrays begin, for functions of C."""

from __future__ import annotations

import ctypes

from compass_core.arrays import Array


def address(array: Array) -> int:
    """Where the first element of an array lies."""
    flags = array.flags
    if array.size and flags.c_contiguous and flags.writeable:
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))  # a third of the time of the other way
    return array.ctypes.data
