"""CUDA devices: CUDA C, and PTX where NVRTC is installed. Launching needs a device, building does not."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from compass_runtime.cuda_module import CudaModule
from compass_runtime.module import HostModule
from compassc.targets import nvrtc, signature
from compassc.targets.dialects import CUDA
from compassc.targets.grid_c import program_for
from compassc.targets.kind import Kind, Option, register_kind
from compassc.te.machine import Grid

if TYPE_CHECKING:
    from compass_runtime.module import Module
    from compassc.ir.stmts import IRModule
    from compassc.targets.target import Target


def _machine(target: Target) -> Grid:
    return Grid("cuda")


def _generate(module: IRModule, target: Target) -> Module:
    program = program_for(module, target, CUDA)
    described = signature.of(module.entry_func)
    described |= {"launches": [asdict(launch) for launch in program.launches], "workspaces": dict(program.workspaces)}
    made = HostModule()
    made.import_module(CudaModule(program.text, nvrtc.ptx(program.text, module.entry, target.arch), described))
    return made


KIND = register_kind(
    Kind(
        "cuda",
        "cuda",
        "CUDA devices: CUDA C and PTX",
        _machine,
        _generate,
        ("cuda", "gpu"),
        {
            "arch": Option(str, "sm_75", "the least architecture that the PTX is for", r"sm_\d+[a-f]?"),
            "max_num_threads": Option(int, 1024, "threads of a block at most", range(1, 1025)),
        },
    )
)
