"""`compassc group`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compass_core import files, switches, targets
from compass_core.errors import UsageError
from compassc.cli import options
from compassc.cli.console import Console, artifact
from compassc.cli.grouping import with_cycles
from compassc.cli.option_types import Options
from compassc.cli.outputs import STDIO
from compassc.importers import refuse_models

if TYPE_CHECKING:
    from typing_extensions import Unpack

EXAMPLE = """\
compassc group model.compass/quant.txt -o launches.txt
compassc group quant.txt -t X3P_1304 --cycles
compassc group quant.txt --print-changed
compassc gbuild quant.txt --launches launches.txt"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("source", type=options.INPUT, metavar="GRAPH.txt", required=False)
@click.option(
    "-w", "--weights", type=options.INPUT, metavar="FILE", help="The constants (default: GRAPH.bin beside the graph)."
)
@options.target_option
@click.option("--plugins", multiple=True, type=options.PLACE, metavar="DIR|FILE", help="Load plugins of DIR, or FILE.")
@options.aiff_option
@click.option("--cycles", is_flag=True, help="Build the graph and run it on zeros: estimated cycles of each launch.")
@options.output_option
@options.launch_pass_options
@options.talk_options
@click.pass_obj
def command(
    console: Console,
    source: Path | None,
    weights: Path | None,
    output: Path | None,
    target: str,
    **given: Unpack[Options],
) -> None:
    """Which layers of a graph run in one launch, and why no more (launches.txt).

    Element-wise layers join the kernel of the layer before them, with the same results. For each launch: its layers, why
    it ends, its kernel, what it reads and writes in memory. Without -o the result is GRAPH.launches.txt beside the
    graph. Nothing is compiled, but with --cycles.
    """
    from compassc.cli.pipeline import launch_pass_options, launch_pipeline_text
    from compassc.gbuilder.build import GraphOptions, group_in_memory
    from compassc.graph.files import load
    from compassc.graph.launches import write_launches

    if given["print_pipeline"]:
        artifact(launch_pipeline_text() + "\n")
        return
    if source is None:
        help = "`compassc group --help` shows an example"
        raise UsageError("group needs the graph's file", code="usage", help=help)
    refuse_models(source)
    console.inputs.append(source)
    name = targets.load(target or switches.TARGET.get()).name
    chosen = GraphOptions(plugin_dirs=given["plugins"], aiff=given["aiff"], passes=launch_pass_options(given))
    graph = load(source, weights)
    made = group_in_memory(graph, source.parent, name, chosen)
    if given["cycles"]:
        made = with_cycles(made, chosen)
    text = write_launches(made)
    console.clear_progress()
    console.say(text.partition("\n")[0].lstrip("# "))
    if output == STDIO:
        artifact(text)
    else:
        console.made(files.write(output or source.with_suffix(".launches.txt"), text))
