"""`compassc codegen`."""

from __future__ import annotations

from pathlib import Path

import click

from compassc.cli import options
from compassc.cli.console import Console
from compassc.driver import Request

EXAMPLE = """\
compassc codegen kernel.compass/vadd.legal.txt
compassc codegen vadd.legal.txt -o - | less
compassc codegen kernel.py:vadd -t X2_1204 -o -"""


@click.command(epilog=options.example(EXAMPLE))
@options.kernel_argument("NAME.legal.txt|KERNEL.py[:NAME]")
@options.target_option
@options.output_option
@options.talk_options
@click.pass_obj
def command(console: Console, source: Path, target: str, output: Path | None) -> None:
    """Legalised IR text, or a kernel, to Compass OpenCL C (NAME.cl).

    The line map (NAME.cl.map) and the parameters (NAME.params.json) are written beside the text.
    """
    from compassc.cli.pipeline import run_file

    run_file(console, "codegen", source, output, Request(target=target))
