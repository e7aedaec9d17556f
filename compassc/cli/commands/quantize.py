"""`compassc quantize`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compassc.cli import options, quantizing
from compassc.cli.console import Console
from compassc.cli.option_types import Calibration as GivenCalibration
from compassc.cli.outputs import graph_place
from compassc.graph import files, verify
from compassc.importers import refuse_models
from compassc.quantizer import Calibration

if TYPE_CHECKING:
    from typing_extensions import Unpack

EXAMPLE = """\
compassc quantize model.txt --calibrate samples.npz -o quant.txt
compassc quantize model.txt --calibrate images/ --mean 127.5 --std 127.5
compassc quantize model.txt --calibrate data.py:Samples --min-cosine 0.99"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("source", type=options.INPUT, metavar="GRAPH.txt")
@click.option(
    "-w", "--weights", type=options.INPUT, metavar="FILE", help="The constants (default: GRAPH.bin beside the graph)."
)
@options.output_option
@quantizing.quantize_option
@quantizing.calibration_options
@click.option("--save-statistics", type=options.OUTPUT, metavar="FILE.npz", help="Keep what calibration found.")
@click.option("--statistics", type=options.INPUT, metavar="FILE.npz", help="Take what an earlier run kept.")
@options.talk_options
@click.pass_obj
def command(
    console: Console,
    source: Path,
    weights: Path | None,
    output: Path | None,
    save_statistics: Path | None,
    statistics: Path | None,
    **given: Unpack[GivenCalibration],
) -> None:
    """A float graph to a graph of integers (GRAPH.txt, GRAPH.bin).

    The float graph runs on the calibration data, which tells the ranges of its tensors. Layers without a form in
    integers stay half floats, and are named. Without -o the result is GRAPH.quant.txt beside the graph.
    """
    path = graph_place(output, source.with_suffix(".quant.txt"))
    console.inputs.append(source)
    refuse_models(source)
    graph = files.load(source, weights)
    verify.check(graph)
    made = quantizing.quantised(console, graph, given, Calibration.load(statistics) if statistics else None)
    verify.check(made.graph, verify.Stage.QUANTISED)
    files.save(made.graph, path)
    if save_statistics is not None and made.calibration is not None:
        made.calibration.save(save_statistics)
    console.clear_progress()
    for line in quantizing.summary(made):
        console.say(line)
    console.made(path)
