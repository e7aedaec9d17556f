"""The loops as plain OpenCL, run by PoCL on this machine's processors through pyopencl.

Neither is needed by the project: `pip install -e '.[bench]'` and the Debian package `pocl-opencl-icd` bring them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent


def device() -> Any | None:
    """A processor under PoCL; None where there is none."""
    try:
        import pyopencl as cl
    except ImportError:
        return None
    try:
        platforms = cl.get_platforms()
    except cl.LogicError:  # the loader is there, but no implementation
        return None
    found = [d for p in platforms if "portable" in p.name.lower() for d in p.get_devices(cl.device_type.CPU)]
    return found[0] if found else None


class Kernel:
    """`NAME.cl` with its arguments in device memory, to be run many times."""

    def __init__(
        self, device: Any, name: str, args: Sequence[Any], items: tuple[int, ...], group: tuple[int, ...] | None
    ) -> None:
        import pyopencl as cl

        self._context = cl.Context([device])
        self._queue = cl.CommandQueue(self._context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        program = cl.Program(self._context, (HERE / f"{name}.cl").read_text(encoding="utf-8"))
        self._kernel = cl.Kernel(program.build("-cl-std=CL1.2"), name)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self._buffers = [
            cl.Buffer(self._context, flags, hostbuf=a) if isinstance(a, np.ndarray) else None for a in args
        ]
        for i, (value, buffer) in enumerate(zip(args, self._buffers, strict=True)):
            scalar = np.float32(value) if isinstance(value, float) else value if buffer else np.int32(value)
            self._kernel.set_arg(i, buffer if buffer is not None else scalar)
        self._grid = items, group

    def seconds(self) -> float:
        """One run: the time from when the device got it to its end, as the engine's clock takes it."""
        import pyopencl as cl

        event = cl.enqueue_nd_range_kernel(self._queue, self._kernel, *self._grid)
        event.wait()
        return (event.profile.end - event.profile.submit) / 1e9

    def fetch(self, position: int, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The content of an argument."""
        import pyopencl as cl

        out = np.empty_like(like)
        cl.enqueue_copy(self._queue, out, self._buffers[position])
        return out
