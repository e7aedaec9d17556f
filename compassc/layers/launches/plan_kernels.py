"""Each launch of built-in layers gets its kernel, or the reason why there is none."""

from __future__ import annotations

from dataclasses import replace

from compassc.graph.launches import Launch, Launches
from compassc.graph.tensor import LayerError
from compassc.layers.kernels import kernel_of
from compassc.layers.machine import planned_for

NAME = "PlanKernels"


def run(program: Launches) -> Launches:
    """The launches with their kernels."""
    launches = tuple(
        launch if launch.plugin or launch.kernel or launch.refused else planned(launch, program.target)
        for launch in program.launches
    )
    return replace(program, launches=launches)


def planned(launch: Launch, target: str) -> Launch:
    """A launch with its kernel for a target, or with the reason why it has none."""
    try:
        with planned_for(target):
            return replace(launch, kernel=kernel_of(launch.layers), refused="")
    except LayerError as reason:
        return replace(launch, kernel=None, refused=str(reason))
