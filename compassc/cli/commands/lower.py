"""`compassc lower`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from compassc.cli import options
from compassc.cli.console import Console

EXAMPLE = """\
compassc lower kernel.compass/vadd.ir.txt
compassc lower vadd.ir.txt -o - --print-changed"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("source", type=options.INPUT, metavar="NAME.ir.txt", required=False)
@options.output_option
@options.pass_options
@options.talk_options
@click.pass_obj
def command(console: Console, source: Path | None, output: Path | None, **passes: Any) -> None:
    """IR text to lowered IR text (NAME.lowered.txt)."""
    from compassc.cli.pipeline import run_pass_stage

    run_pass_stage(console, "lower", source, output, passes)
