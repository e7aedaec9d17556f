"""The simulator: kernels as host code, in a process of their own, on shared device memory.

`Worker` is a device; `memory_map` says where its memory is; `lines.locate` leads from a fault to a source line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compass_sim.engine import engine_path
    from compass_sim.faults import KernelFault, SimulatorError, TecLocation
    from compass_sim.records import Record, RecordKind, Tick, Transfer
    from compass_sim.worker import RunResult, Worker

_HOMES = {
    "KernelFault": "faults",
    "Record": "records",
    "RecordKind": "records",
    "RunResult": "worker",
    "SimulatorError": "faults",
    "TecLocation": "faults",
    "Tick": "records",
    "Transfer": "records",
    "Worker": "worker",
    "engine_path": "engine",
}
__all__ = [
    "KernelFault",
    "Record",
    "RecordKind",
    "RunResult",
    "SimulatorError",
    "TecLocation",
    "Tick",
    "Transfer",
    "Worker",
    "engine_path",
]


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'compass_sim' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"compass_sim.{_HOMES[name]}"), name)
