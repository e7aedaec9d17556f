"""`compassc partition`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compass_core import files, switches, targets
from compassc.cli import options
from compassc.cli.console import Console, artifact
from compassc.cli.outputs import hand_over, place
from compassc.cli.tables import table_text

if TYPE_CHECKING:
    from compassc.relay.backend.placement import Placed

EXAMPLE = """\
compassc partition model.onnx -t X2_1204
compassc partition net.relay --params net.params --html net.html
compassc partition quantised.tflite
compassc partition model.onnx --host nn.softmax --host 12 -o net.tar"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("source", type=options.INPUT, metavar="MODEL")
@options.output_option
@options.target_option
@options.model_shape_option
@click.option("--params", type=options.INPUT, metavar="FILE", help="Parameters of a program, by name.")
@click.option("--integers", is_flag=True, help="Compute what lies between DEQUANTIZE and QUANTIZE in integers.")
@click.option("--host", multiple=True, metavar="OP|N", help="Run this operator, or call N, on the host. Repeatable.")
@click.option("--npu", multiple=True, metavar="OP|N", help="Run only such operators and calls on the NPU. Repeatable.")
@click.option(
    "--minimal-calls", type=click.IntRange(1), default=1, metavar="N", help="Smaller regions run on the host."
)
@click.option("--html", type=options.OUTPUT, metavar="FILE", help="Write a page with a picture, too.")
@options.talk_options
@click.pass_obj
def command(
    console: Console,
    /,
    source: Path,
    output: Path | None,
    target: str | None,
    shapes: dict[str, tuple[int, ...]],
    params: Path | None,
    html: Path | None,
    integers: bool,
    **chosen: object,
) -> None:
    """Which operators of a model run on the NPU, which on the host, and why.

    MODEL is a program of Relay as text, or a model of another framework. With -o it is built into one file, which compass-run runs,
    and what the graph builder refuses runs on the host, too.
    """
    from compassc.pass_manager.context import PassContext
    from compassc.relay.backend.build import build, partition
    from compassc.relay.backend.placement import SETTING
    from compassc.relay.backend.placement_page import placement_page
    from compassc.relay.programs import read_program

    name = targets.load(target or switches.TARGET.get()).name
    console.inputs.append(source)
    module, known = read_program(source, shapes, params, integers)
    with PassContext(opt_level=3, config={SETTING: chosen}):
        if output is None:
            placement = partition(module, name, known)
        else:
            built = build(module, name, params=known)
            placement = built.placement
            with place(output) as made:
                built.export_library(str(made))
                hand_over(console, made, output)
    console.clear_progress()
    _show(placement.rows)
    if html is not None:
        files.write(html, placement_page(placement, f"{source.name} on {name}").encode())
        console.made(html)


def _show(rows: Sequence[Placed]) -> None:
    """The table, with colours on a terminal."""
    from compassc.relay.backend.placement import NPU
    from compassc.relay.backend.placement_page import COLUMNS, lines_of

    if not sys.stdout.isatty():
        artifact(table_text(("", COLUMNS, lines_of(rows))))
        return
    from rich.console import Console as Terminal
    from rich.table import Table
    from rich.text import Text

    table = Table(*COLUMNS, box=None, header_style="bold")
    for row, line in zip(rows, lines_of(rows), strict=True):
        table.add_row(*map(Text, line), style="green" if row.place == NPU else "yellow")
    Terminal().print(table)
