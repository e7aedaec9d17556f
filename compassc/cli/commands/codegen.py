"""`compassc codegen`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from compassc.cli import options
from compassc.cli.console import Console

EXAMPLE = """\
compassc codegen kernel.compass/vadd.lowered.txt
compassc codegen vadd.lowered.txt -o - | less"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("source", type=options.INPUT, metavar="NAME.lowered.txt", required=False)
@options.output_option
@options.pass_options
@options.talk_options
@click.pass_obj
def command(console: Console, source: Path | None, output: Path | None, **passes: Any) -> None:
    """Lowered IR text to Compass OpenCL C (NAME.cl).

    The line map (NAME.cl.map) and the parameters (NAME.params.json) are written beside the text.
    """
    from compassc.cli.pipeline import run_pass_stage

    run_pass_stage(console, "codegen", source, output, passes)
