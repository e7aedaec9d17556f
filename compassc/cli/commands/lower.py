"""`compassc lower`."""

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
compassc lower kernel.compass/vadd.ir.txt
compassc lower vadd.ir.txt -o - --print-changed
compassc lower kernel.py:vadd -t X2_1204 -o -"""


@click.command(epilog=options.example(EXAMPLE))
@options.kernel_argument("NAME.ir.txt|KERNEL.py[:NAME]", needed=False)
@options.target_option
@options.output_option
@options.pass_options
@options.talk_options
@click.pass_obj
def command(console: Console, source: Path | None, target: str, output: Path | None, **passes: Unpack[Passes]) -> None:
    """IR text, or a kernel, to lowered IR text (NAME.lowered.txt)."""
    from compassc.cli.pipeline import run_pass_stage

    run_pass_stage(console, "lower", source, output, passes, target)
