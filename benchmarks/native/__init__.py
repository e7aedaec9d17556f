"""Hand-written C to compare with: compiled by the clang that compiles kernels, loaded into this process.

No C library headers and no start-up files are needed; the few functions used are declared in `tecs.h`.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

from compass_core.clang import find_clang

HERE = Path(__file__).resolve().parent
FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-std=c11", "-fPIC", "-shared", "-nostdlib", "-nostdlibinc",
         "-fuse-ld=lld")  # fmt: skip


def load(name: str) -> ctypes.CDLL:
    """The shared library made from `NAME.c`; its functions return nanoseconds."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        library = Path(folder, f"{name}.so")
        subprocess.run(
            [str(find_clang().path), *FLAGS, "-Wall", str(HERE / f"{name}.c"), "-o", str(library)],
            check=True,
        )
        return ctypes.CDLL(str(library))
