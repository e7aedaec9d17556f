"""Kinds of devices that nothing here runs on: OpenCL C as text, and those that schedules are only lowered for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from compass_runtime.module import HostModule
from compass_runtime.source_module import SourceModule
from compassc.targets.ctext import NoForm
from compassc.targets.dialects import OPENCL
from compassc.targets.grid_c import program_for
from compassc.targets.kind import Kind, Option, register_kind
from compassc.te.machine import Grid, Machine

if TYPE_CHECKING:
    from compass_runtime.module import Module
    from compassc.ir.stmts import IRModule
    from compassc.targets.target import Target


def _generate_opencl(module: IRModule, target: Target) -> Module:
    program = program_for(module, target, OPENCL)
    made = HostModule()
    made.import_module(SourceModule(program.text, "opencl", module.entry))
    return made


def _refuse(module: IRModule, target: Target) -> Module:
    raise NoForm(
        f"there is no code generator for '{target.kind.name}': schedules are lowered and printed for it, not built",
        "build for llvm, c, cuda, opencl (as text) or an NPU",
    )


def _threads(most: int) -> dict[str, Option]:
    return {"max_num_threads": Option(int, most, "threads of a block at most", range(1, 1 << 16))}


def _grid(target: Target) -> Machine:
    return Grid(target.kind.name)


def _core(target: Target) -> Machine:
    return Machine(target.kind.name)


_GRIDS: tuple[tuple[str, str, tuple[str, ...], int], ...] = (
    ("opencl", "opencl", ("opencl", "gpu"), 256),
    ("rocm", "rocm", ("rocm", "gpu"), 256),
    ("vulkan", "vulkan", ("vulkan", "gpu"), 256),
    ("metal", "metal", ("metal", "gpu"), 256),
    ("webgpu", "webgpu", ("webgpu", "gpu"), 256),
    ("nvptx", "cuda", ("cuda", "gpu"), 1024),
    ("sdaccel", "opencl", ("sdaccel", "hls"), 256),
    ("aocl", "opencl", ("aocl", "hls"), 256),
)
"""Names, kinds of devices, keys, and how many threads a block has at most."""
_CORES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("hexagon", "hexagon", ("hexagon", "cpu")),
    ("ext_dev", "ext_dev", ("ext_dev",)),
    ("stackvm", "cpu", ("cpu",)),
    ("hybrid", "cpu", ("hybrid", "cpu")),
)
_GENERATORS: dict[str, tuple[str, Callable[[IRModule, Target], Module]]] = {
    "opencl": ("OpenCL devices: OpenCL C, which is not run here", _generate_opencl)
}
_UNBUILT = "schedules are lowered for it, and not built"


def _registered() -> None:
    for name, device, keys, most in _GRIDS:
        help, generate = _GENERATORS.get(name, (_UNBUILT, _refuse))
        register_kind(Kind(name, device, help, _grid, generate, keys, _threads(most)))
    for name, device, keys in _CORES:
        register_kind(Kind(name, device, _UNBUILT, _core, _refuse, keys))


_registered()
