"""`aipugb`: the graph builder under its vendor's name and options, for programs that call it as one.

`aipugb GRAPH -w BIN --target T` is `compassc gbuild GRAPH -w BIN -t T` with the folders and files such programs expect:
plugins in `./plugin` and `.`, objects below the working directory, and `temp.graph.json` in it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from compass_core import files, switches, targets
from compassc.cli import errors, options
from compassc.cli.console import Console
from compassc.cli.outputs import hand_over, place
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.gbuilder.graph_json import FILE

_AT_RUN = "any program is profiled when it is run: compass-run --profile"
WITHOUT_EFFECT = {
    "profile": _AT_RUN,
    "fast_perf": _AT_RUN,
    "enable_dma_perf": _AT_RUN,
    "tcm_size": "the simulator has no TCM",
    "prof_unit": _AT_RUN,
    "disable_mmu": "the simulator has no MMU",
    "dumpir": "there are no inner stages to dump",
    "dump": "there are no inner stages to dump",
}
"""Option -> why it changes nothing here; it is taken, and said so with --DEBUG."""
NO_INPUT_REUSE, NO_OUTPUT_REUSE = 1, 2
"""Bits of the note `compilermsg`."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("graph", type=options.FILE)
@click.option("-w", "--weights", type=options.FILE, metavar="BIN")
@click.option("--target", "-t", default="", metavar="NAME", help="NPU configuration, e.g. X2_1204.")
@click.option("-o", "--output", type=options.OutputPath(), default=Path("aipu.bin"))
@click.option("-L", "--Lib", "--lib", "libraries", multiple=True, type=options.FOLDER, help="Look for objects in DIR.")
@click.option("--disable_input_buffer_reuse", is_flag=True, help="Record it; inputs have memory of their own anyway.")
@click.option("--disable_output_buffer_reuse", is_flag=True, help="Record it; outputs have memory of their own anyway.")
@click.option("-p", "--profile", is_flag=True, help="No effect here.")
@click.option("--fast_perf", is_flag=True, help="No effect here.")
@click.option("--enable_dma_perf", is_flag=True, help="No effect here.")
@click.option("--tcm_size", type=int, metavar="KB", help="No effect here.")
@click.option("--dumpIR", "dumpir", metavar="X", help="No effect here.")
@click.option("--prof_unit", type=click.Choice(["AIFF", "TPC", "DMA"]), help="No effect here.")
@click.option("--dump", is_flag=True, help="No effect here.")
@click.option("--disable_mmu", is_flag=True, help="No effect here.")
@click.option("--DEBUG", "debug", is_flag=True, help="Say more.")
@click.pass_obj
def command(console: Console, /, graph: Path, weights: Path | None, target: str, output: Path, **given: Any) -> None:
    """Build a Compass IR graph into aipu.bin."""

    for name, why in WITHOUT_EFFECT.items():
        if given[name] and given["debug"]:
            console.say(f"--{name} has no effect: {why}")
    here = Path.cwd()
    flags = (
        NO_INPUT_REUSE * given["disable_input_buffer_reuse"] | NO_OUTPUT_REUSE * given["disable_output_buffer_reuse"]
    )
    with place(output) as made:
        choice = GraphOptions(
            plugin_dirs=(here / "plugin", here),
            library_dirs=(here, *given["libraries"]),
            work_dir=made.parent / f"{graph.stem}.compass",
            flags=flags,
        )
        built = build_model(graph, weights, made, targets.load(target or switches.TARGET.get()).name, choice)
        files.write(Path(FILE), built.graph_json or b"{}")
        console.say(built.summary())
        hand_over(console, made, output)
    console.say("Total errors: 0, warnings: 0")


def main() -> None:
    """Entry point of the `aipugb` program."""
    sys.exit(errors.run(command, sys.argv[1:], "aipugb"))


if __name__ == "__main__":
    main()
