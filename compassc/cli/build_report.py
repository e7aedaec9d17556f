"""What is said of a graph that was built."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import compass_runtime
from compassc.cli.console import Console
from compassc.graph import GraphBuilder
from compassc.graph.dtypes import numpy_dtype

if TYPE_CHECKING:
    from compassc.gbuilder.build import GraphBuild
    from compassc.graph import Layer
    from compassc.models.model import Model

MOST_OPERATIONS = 1 << 28
"""Of a layer that is run for its cycles: the simulator takes seconds for so many."""


def tell(console: Console, built: GraphBuild, target: str, aiff: bool) -> None:
    """Says launches and memory; before them, where the AIFF was asked for, which layers went there and why others did not,
    and how long both forms take."""
    if aiff and not built.on_aiff:
        console.say("no layer is a convolution, which the AIFF could run")
    for where in built.on_aiff:
        console.say(str(where) if where.reason else f"{where}; {_compared(where.layer, target)}")
    console.say(built.summary())


def costs(console: Console, model: Model) -> Iterator[str]:
    """What a model holds; where somebody looks, or asks for more words, also what a run takes, which is run for that."""
    from compassc.layers.costs import cost_of

    weights = sum(a.nbytes for layer in model.graph.layers for a in layer.constants.values())
    yield f"constants: {weights:,} bytes"
    if not (console.verbose or sys.stderr.isatty()):
        return
    if sum(cost_of(layer).operations for layer in model.layers) > MOST_OPERATIONS:
        yield f"`compassc run {model.folder} --inputs FILE --profile` tells what a run takes"
        return
    with _without_warnings():
        yield f"a run takes {model.profile().cycles:,.0f} cycles (estimated)"


def _compared(layer: Layer, target: str) -> str:
    from compassc.layers.costs import cost_of

    if cost_of(layer).operations > MOST_OPERATIONS:
        return "it is too large to be run for its cycles here"
    with _without_warnings():
        unit, kernel = (_cycles(layer, target, aiff) for aiff in (True, False))
    return f"at least {unit:,} cycles, for what it moves; a kernel for TECs takes {kernel:,} (estimated)"


@contextmanager
def _without_warnings() -> Iterator[None]:
    """While runs are made whose results nobody sees, what these rest on is not said."""
    logger = logging.getLogger("Compass")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _cycles(layer: Layer, target: str, aiff: bool) -> int:
    """The estimated cycles of a run of a layer alone, on zeros."""
    import numpy as np

    from compass_runtime.profile.collect import counting
    from compass_runtime.profile.result import profile_of
    from compassc.gbuilder.build import GraphOptions, build_in_memory

    graph = GraphBuilder(layer.name)
    for tensor in layer.inputs:
        graph.input(tensor.name, tensor.shape, tensor.dtype, scale=tensor.scale, zero=tensor.zero)
    made = graph.layer(
        layer.type,
        layer.inputs,
        name=layer.name,
        outputs=layer.outputs,
        attributes=layer.attributes,
        constants=layer.constants,
    )
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as name:
        options = GraphOptions(work_dir=Path(name) / "kernels", aiff=aiff)
        path = build_in_memory(graph.finish(made), Path(name), Path(name) / "aipu.bin", target, options).path
        program = compass_runtime.Program.load(path)
        job = counting(program).program.create_job()
        job.run({t.name: np.zeros(t.shape, numpy_dtype(t.dtype)) for t in layer.inputs}, record=True)
        return profile_of(program, job.result).cycles
