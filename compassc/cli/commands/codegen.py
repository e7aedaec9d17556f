"""`compassc codegen`."""

from __future__ import annotations

from pathlib import Path

import click

from compassc.cli import options
from compassc.cli.console import Console

EXAMPLE = """\
compassc codegen kernel.compass/vadd.legal.txt
compassc codegen vadd.legal.txt -o - | less"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("source", type=options.INPUT, metavar="NAME.legal.txt")
@options.output_option
@options.talk_options
@click.pass_obj
def command(console: Console, source: Path, output: Path | None) -> None:
    """Legalised IR text to Compass OpenCL C (NAME.cl).

    The line map (NAME.cl.map) and the parameters (NAME.params.json) are written beside the text.
    """
    from compassc.cli.arrow import run_arrow
    from compassc.driver import Request

    run_arrow(console, "codegen", source, output, Request())
