"""Loads an aipu.bin and runs it on the simulator.

    program = Program.load("aipu.bin")
    job = program.create_job()
    outputs = job.run([a, b])

`Program.call(args)` is the quick way for many calls: one argument per kernel parameter, outputs in place. `Context` has
the same in the driver's terms. `Module`, `NDArray`, `PackedFunc` and `Device` are what programs for the vendor's
runtime use; `load_module` runs what `Module.export_library` wrote, without the compiler.
"""

from __future__ import annotations

from typing import Any

_NAMES = {
    "codegens": "code_generator register_code_generator",
    "compass_module": "CompassModule",
    "devices": "Device DeviceAPI cpu cuda device device_api",
    "driver": "Context DriverError",
    "job": "Job",
    "module": "Module PythonModule load_module",
    "ndarray": "NDArray array empty from_dlpack",
    "packed": "PackedFunc convert get_global_func list_global_func_names register_func remove_global_func",
    "program": "Program TensorInfo",
    "status": "Status",
    "timing": "BenchmarkResult",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
