"""`compassc parse`."""

from __future__ import annotations

from pathlib import Path

import click

from compassc.cli import options
from compassc.cli.console import Console
from compassc.cli.single_stage import run_arrow
from compassc.driver import Request


@click.command(epilog=options.example("compassc parse kernel.py -t X2_1204 -k vadd\ncompassc parse kernel.py -o -"))
@options.kernel_argument("KERNEL.py[:NAME]")
@options.target_option
@click.option("-k", "--kernel", metavar="NAME", help="The entry function, when the file has several.")
@options.output_option
@options.talk_options
@click.pass_obj
def command(console: Console, source: Path, target: str, kernel: str | None, output: Path | None) -> None:
    """kernel.py to IR text (NAME.ir.txt).

    The file is executed as a Python module, and its kernel is read. Without -o the text goes to
    kernel.compass/NAME.ir.txt.
    """
    run_arrow(
        console, "parse", source, output, Request(target=target, entry=options.entry(kernel), module=options.module())
    )
