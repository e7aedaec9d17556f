"""Hand-written C to compare with: compiled by the clang that compiles kernels, loaded into this process.

No C library headers and no start-up files are needed; the few functions used are declared in `tecs.h`.
"""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compass_core.hostcc.clang import find_clang

HERE = Path(__file__).resolve().parent
FLAGS = (
    "-O3",
    "-march=native",
    "-ffp-contract=off",
    "-Xclang",
    "-ffloat16-excess-precision=none",
    "-std=c11",
    "-fPIC",
    "-shared",
    "-nostdlib",
    "-nostdlibinc",
    "-fuse-ld=lld",
)


class Function:
    """The function NAME of `NAME.c` with its arguments, to be run many times. `arrays`: its own copies of the arrays."""

    def __init__(self, name: str, args: Sequence[Any]) -> None:
        self._function = getattr(_load(name), name)
        self._function.restype = ctypes.c_int64
        self.arrays = [_as_malloc_gives_it(a) if isinstance(a, np.ndarray) else None for a in args]
        self._args = [
            ctypes.c_void_p(copy.ctypes.data) if copy is not None else ctypes.c_float(a) if isinstance(a, float) else a
            for a, copy in zip(args, self.arrays, strict=True)
        ]

    def seconds(self) -> float:
        """One run: the time it took, by its own clock."""
        return float(self._function(*self._args)) / 1e9


def _load(name: str) -> ctypes.CDLL:
    """The shared library made from `NAME.c`; its functions return nanoseconds."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        library = Path(folder, f"{name}.so")
        subprocess.run(
            [str(find_clang().path), *FLAGS, "-Wall", str(HERE / f"{name}.c"), "-o", str(library)],
            check=True,
        )
        return ctypes.CDLL(str(library))


def _as_malloc_gives_it(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy in memory as a C program has it from malloc. NumPy asks the system for huge pages, which malloc does not."""
    memory = mmap.mmap(-1, array.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    copy = np.frombuffer(memory, array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
