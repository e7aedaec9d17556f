"""`compassc inspect`."""

from __future__ import annotations

from pathlib import Path

import click

from compassc.cli import options
from compassc.cli.console import artifact
from compassc.cli.tables import tables_text


@click.command(epilog=options.example("compassc inspect aipu.bin\ncompassc inspect kernel.compass/vadd.params.json"))
@click.argument("source", type=options.PLACE, metavar="FILE")
@options.talk_options
def command(source: Path) -> None:
    """Show a stage file or an aipu.bin as tables.

    FILE is any file of kernel.compass/, the folder itself, an aipu.bin, or a chain of AIFF control descriptors.
    """
    from compassc.cli.inspecting import describe_file

    artifact(tables_text(describe_file(source)))
