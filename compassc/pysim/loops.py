"""Loops over numbers for which NumPy would pass memory many times, in C; what they give is None where NumPy is to do it.

Both give the same bits. `main` builds the library, for set-up.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from compass_core.addresses import address
from compass_core.arrays import Array
from compass_core.native import Native, install
from compassc import services

_POINTER, _COUNT = ctypes.c_void_p, ctypes.c_long
_ARGUMENTS: Mapping[str, tuple[type, ...]] = {
    "exp_each": (*2 * (_POINTER,), _COUNT),
    "fused_product": (*4 * (_POINTER,), *3 * (_COUNT,)),
    **{f"rows_{how}": (*2 * (_POINTER,), *4 * (_COUNT,)) for how in ("sum", "max", "min")},
}
LOADED_AFTER = 1 << 20
"""Operations that NumPy does in about the time in which the library is loaded: what needs fewer of them needs no library."""
_done = [0]
"""Operations that NumPy did so far."""


def _text() -> tuple[str, str]:
    """Name and text of the library."""
    return "pysim_loops", Path(__file__).with_suffix(".c").read_text(encoding="utf-8")


def _path() -> Path:
    found: Path = services.own_library(*_text()).path()
    return found


_library = Native(_path, _ARGUMENTS, "tiles are computed by NumPy alone")


def library(operations: int) -> ctypes.CDLL | None:
    """The library, for so many operations; None where NumPy is to do them."""
    if not _library.was_looked_for:
        _done[0] += operations
        if _done[0] < LOADED_AFTER:
            return None
    return _library()


def exp(x: Array) -> Array | None:
    """e^x of float32 numbers [n], as `fp.exp` has it."""
    loops = library(16 * x.size)
    if loops is None:
        return None
    x, found = np.ascontiguousarray(x), np.empty(x.size, np.float32)
    loops.exp_each(address(found), address(x), x.size)
    return found


def fused_product(x: Array, y: Array, acc: Array) -> Array | None:
    """`acc + x @ y` of float32 matrices, as `fp.fused_product` has it."""
    (rows, depth), cols = x.shape, y.shape[1]
    loops = library(rows * depth * cols)
    if loops is None:
        return None
    x, y, acc = (np.ascontiguousarray(a) for a in (x, y, acc))
    found = np.empty((rows, cols), np.float32)
    strange = loops.fused_product(address(found), address(x), address(y), address(acc), rows, depth, cols)
    return None if strange else found


def rows(how: str, values: Array, native: int) -> Array | None:
    """The sums, largest or smallest numbers of float32 rows, as `moves.Reduced` joins them in registers of `native` lanes."""
    loops = library(values.size)
    if loops is None:
        return None
    values, (many, cols) = _in_rows(values), values.shape
    found = np.empty((many, 1), np.float32)
    write = getattr(loops, f"rows_{how}")
    strange = write(address(found), address(values), many, cols, values.strides[0] // 4, native)
    return None if strange else found


def _in_rows(values: Array) -> Array:
    """A matrix whose rows have no gaps."""
    return values if values.strides[1] == values.itemsize else np.ascontiguousarray(values)


def main() -> int:
    """Builds the library beside `compassc.targets.own_library`; the exit code of the error otherwise."""
    return install(lambda: services.own_library(*_text()).install())
