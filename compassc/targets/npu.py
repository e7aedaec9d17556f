"""The NPU targets: kernels in C, built to an aipu.bin, run on the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compass_core import switches
from compass_core import targets as configurations
from compassc import services
from compassc.targets.kind import Kind, Option, register_kind
from compassc.te.machine import Npu

if TYPE_CHECKING:
    from compassc.targets.target import Target


def _machine(target: Target) -> Npu:
    return Npu(configurations.load(target.mcpu))


KIND = register_kind(
    Kind(
        "compass",
        "compass",
        "Zhouyi NPUs, on the simulator",
        _machine,
        services.npu_module,
        ("compass",),
        {
            "mcpu": Option(str, switches.TARGET.default, "the configuration; `compassc targets` lists them"),
            "system-lib": Option(bool, False, "for programs written for other toolchains; no effect"),
        },
    )
)
