"""The NPU targets: kernels in C, built to an aipu.bin, run on the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compass_core import switches
from compass_core import targets as configurations
from compassc.targets.kind import Kind, Option, register_kind
from compassc.te.machine import Npu

if TYPE_CHECKING:
    from compass_runtime.module import Module
    from compassc.ir.stmts import IRModule
    from compassc.targets.target import Target


def _machine(target: Target) -> Npu:
    return Npu(configurations.load(target.mcpu))


def _generate(module: IRModule, target: Target) -> Module:
    from compass_runtime.compass_module import CompassModule
    from compassc.dsl import BuildManager
    from compassc.targets import signature

    built = BuildManager(target.mcpu).build(module)
    described = signature.of(module.entry_func) if signature.is_declared(module.entry_func) else None
    return CompassModule(built.module.content, source=built.c_code, description=described)


KIND = register_kind(
    Kind(
        "compass",
        "compass",
        "Zhouyi NPUs, on the simulator",
        _machine,
        _generate,
        ("compass",),
        {
            "mcpu": Option(str, switches.TARGET.default, "the configuration; `compassc targets` lists them"),
            "system-lib": Option(bool, False, "for programs written for other toolchains; no effect"),
        },
    )
)
