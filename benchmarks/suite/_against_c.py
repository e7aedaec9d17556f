"""An example on the simulator against hand-written C on as many threads: same inputs, same bits, times in turns."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

from benchmarks import native
from benchmarks.core import Result, median, median_ratio, side_by_side
from compassc.dsl import BuildManager

from ._examples import TARGET, kernel

ELEMENTS = 4 * 1024 * 1024
ROUNDS = 200


def compare(name: str, inputs: list[np.ndarray[Any, Any]], scalars: list[int], by: str = "") -> Result:
    """Speed of the simulator's engine as a share of the C program's. The arguments are inputs, one output, scalars.

    `by`: the function of NAME.c to compare with; the default is the one called NAME.
    """
    out = np.zeros_like(inputs[0])
    held = [_as_malloc_gives_it(a) for a in (*inputs, out)]
    executor = BuildManager(TARGET).build(kernel(name))
    function = getattr(native.load(name), by or name)
    function.restype = ctypes.c_int64
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in held]
    by_hand, simulated = side_by_side(
        [lambda: function(*pointers, *scalars) / 1e9, lambda: executor.program.call([*inputs, out, *scalars]).seconds],
        ROUNDS,
    )
    if out.tobytes() != held[-1].tobytes():
        raise ValueError(f"{name}: the kernel and the C program disagree, so their times say nothing")
    detail = f"simulator {1000 * median(simulated):.2f} ms, C {1000 * median(by_hand):.2f} ms"
    return Result(median_ratio(by_hand, simulated), detail)


def _as_malloc_gives_it(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy in memory as a C program has it from malloc. NumPy asks the system for huge pages, which malloc does not."""
    memory = mmap.mmap(-1, array.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    copy = np.frombuffer(memory, array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
