"""The default schedules for CUDA devices, a thread for each element, and for any other kind."""

from __future__ import annotations

from compassc import te
from compassc.targets import Target
from compassc.te.schedule import Schedule
from compassc.topi.schedules.knobs import Knobs
from compassc.topi.schedules.stages import (
    computed_stages,
    fuse_all,
    inline_maps,
)


def on_grid(s: Schedule, target: Target, knobs: Knobs) -> None:
    inline_maps(s)
    for stage in computed_stages(s):
        if not stage.axis:
            continue
        fused = fuse_all(stage, stage.axis)
        outer, inner = stage.split(fused, factor=knobs.threads)
        stage.bind(outer, te.thread_axis("blockIdx.x"))
        stage.bind(inner, te.thread_axis("threadIdx.x"))


def plain(s: Schedule, target: Target, knobs: Knobs) -> None:
    """Element-wise stages inside of what reads them, and nothing else."""
    inline_maps(s)
