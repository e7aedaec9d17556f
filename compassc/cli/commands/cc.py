"""`compassc cc`."""

from __future__ import annotations

from pathlib import Path

import click

from compassc.cli import options
from compassc.cli.console import Console
from compassc.cli.single_stage import run_arrow
from compassc.driver import Request

EXAMPLE = """\
compassc cc kernel.compass/vadd.cl
compassc cc vadd.cl -o vadd.o --dry-run"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("source", type=options.INPUT, metavar="NAME.cl")
@options.target_option
@options.output_option
@options.compiler_options
@options.dry_run_option
@options.talk_options
@click.pass_obj
def command(
    console: Console,
    source: Path,
    target: str,
    output: Path | None,
    clang: str | None,
    cc_options: tuple[str, ...],
    no_cache: bool,
    dry_run: bool,
) -> None:
    """Compass OpenCL C to an object for the simulator (NAME.o).

    The text may be written by hand. A line map NAME.cl.map beside it makes errors name lines of the kernel's Python
    file. The exact command line and all that clang said are in NAME.cc.log.
    """
    request = Request(
        target=target, clang=clang, cc_flags=cc_options, use_cache=False if no_cache else None, dry_run=dry_run
    )
    run_arrow(console, "cc", source, output, request)
