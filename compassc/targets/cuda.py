"""CUDA devices: CUDA C, and PTX where NVRTC is installed. Launching needs a device, building does not."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

from compass_runtime.cuda_module import CudaModule
from compass_runtime.module import HostModule
from compassc import pass_manager
from compassc.targets import cuda_c, nvrtc, signature
from compassc.targets.ctext import NoForm
from compassc.targets.kind import Kind, Option, register_kind
from compassc.te.machine import Grid

if TYPE_CHECKING:
    from compass_runtime.module import Module
    from compassc.ir.stmts import IRModule
    from compassc.targets.target import Target

_LEFT_OUT = ("IfConversion", "VectorizeLoop", "StorageRewrite", "UnrollLoop", "RenameLoopVariables")
"""Passes of the NPU's lowering that are about vectors or its memory, or that NVRTC does itself."""


def _machine(target: Target) -> Grid:
    return Grid("cuda")


def _generate(module: IRModule, target: Target) -> Module:
    names = tuple(name for name in pass_manager.pipeline_names("lower") if name not in _LEFT_OUT)
    lowered = pass_manager.run_pipeline(names, module)
    program = cuda_c.program_of(lowered.entry_func, module.entry_func)
    most = target.attrs["max_num_threads"]
    for launch in program.launches:
        threads = math.prod(size for size in launch.block if isinstance(size, int))
        if threads > most:
            raise NoForm(
                f"'{launch.name}' has blocks of {threads} threads, there are {most} at most",
                "split the loop and bind the outer one to blockIdx",
            )
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
