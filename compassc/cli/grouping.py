"""What the launches of a graph cost."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from compass_runtime import Program

if TYPE_CHECKING:
    from compassc.gbuilder.build import GraphOptions
    from compassc.graph.launches import Launches


def with_cycles(program: Launches, options: GraphOptions) -> Launches:
    """The launches with the estimated cycles of a run on zeros, for which they are built."""
    import numpy as np

    from compass_runtime.profile.collect import counting
    from compass_runtime.profile.result import profile_of
    from compassc.gbuilder.build import build_in_memory
    from compassc.graph.dtypes import numpy_dtype

    graph = program.graph
    with tempfile.TemporaryDirectory(prefix="compassc-") as name:
        built = replace(options, work_dir=Path(name) / "kernels", launches=program)
        run = Program.load(build_in_memory(graph, Path(name), Path(name) / "aipu.bin", program.target, built).path)
        job = counting(run).program.create_job()
        job.run({t.name: np.zeros(t.shape, numpy_dtype(t.dtype)) for t in graph.inputs}, record=True)
        runs = [launch for _, launch in profile_of(run, job.result).launches]
    launches = zip(program.launches, runs, strict=True)
    return replace(program, launches=tuple(replace(one, cycles=round(x.end - x.start)) for one, x in launches))
