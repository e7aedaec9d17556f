"""Loads an aipu.bin and runs it on the simulator.

    program = Program.load("aipu.bin")
    job = program.create_job()
    outputs = job.run([a, b])

`Program.call(args)` is the quick way for many calls: one argument per kernel parameter, outputs in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compass_runtime.job import Job
    from compass_runtime.program import Program, TensorInfo

__all__ = ["Job", "Program", "TensorInfo"]

_HOMES = {"Job": "job", "Program": "program", "TensorInfo": "program"}


def __getattr__(name: str) -> Any:
    """Imports what is asked for, when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
