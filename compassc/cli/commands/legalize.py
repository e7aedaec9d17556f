"""`compassc legalize`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compassc.cli import options
from compassc.cli.console import Console
from compassc.cli.option_types import Passes

if TYPE_CHECKING:
    from typing_extensions import Unpack

EXAMPLE = """\
compassc legalize kernel.compass/vadd.lowered.txt
compassc legalize vadd.lowered.txt -o - --print-changed"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("source", type=options.INPUT, metavar="NAME.lowered.txt", required=False)
@options.output_option
@options.pass_options
@options.talk_options
@click.pass_obj
def command(console: Console, source: Path | None, output: Path | None, **passes: Unpack[Passes]) -> None:
    """Lowered IR text to what the target has (NAME.legal.txt).

    Vectors become registers, operations instructions, masks words. Behind the module stands the interface of the kernel:
    its parameters, and how much of each it accesses.
    """
    from compassc.cli.pipeline import run_pass_stage

    run_pass_stage(console, "legalize", source, output, passes)
