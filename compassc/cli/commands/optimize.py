"""`compassc optimize`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compass_core.errors import UsageError
from compassc.cli import options
from compassc.cli.console import Console
from compassc.cli.option_types import Passes
from compassc.cli.outputs import graph_place
from compassc.importers import refuse_models

if TYPE_CHECKING:
    from typing_extensions import Unpack

EXAMPLE = """\
compassc optimize model.txt -o opt.txt
compassc optimize model.txt --shape x=8x28x28x1 -o batch8.txt
compassc optimize model.txt -o opt.txt --print-changed"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("source", type=options.INPUT, metavar="GRAPH.txt", required=False)
@click.option(
    "-w", "--weights", type=options.INPUT, metavar="FILE", help="The constants (default: GRAPH.bin beside the graph)."
)
@options.output_option
@options.model_shape_option
@options.graph_pass_options
@options.talk_options
@click.pass_obj
def command(
    console: Console,
    source: Path | None,
    weights: Path | None,
    output: Path | None,
    shapes: dict[str, tuple[int, ...]],
    **given: Unpack[Passes],
) -> None:
    """A graph to a simpler one with the same results (GRAPH.txt, GRAPH.bin).

    Constants are computed, moves cancelled, factors and normalisation folded into convolutions. Without -o the result is
    GRAPH.opt.txt beside the graph. With --shape it is for inputs of other shapes.
    """
    from compassc.cli.pipeline import graph_pass_options, graph_pipeline_text
    from compassc.graph import files, passes, verify
    from compassc.graph.specialise import specialise

    if given["print_pipeline"]:
        click.echo(graph_pipeline_text())
        return
    if source is None:
        help = "`compassc optimize --help` shows an example"
        raise UsageError("optimize needs the graph's file", code="usage", help=help)
    refuse_models(source)
    chosen = graph_pass_options(given)
    path = graph_place(output, source.with_suffix(".opt.txt"))
    console.inputs.append(source)
    graph = files.load(source, weights)
    verify.check(graph)
    made = passes.optimise(specialise(graph, shapes), chosen)
    files.save(made, path)
    console.clear_progress()
    console.say(f"{len(graph.layers)} layers, now {len(made.layers)}")
    console.made(path)
