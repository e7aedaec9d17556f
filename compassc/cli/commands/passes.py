"""`compassc passes`."""

from __future__ import annotations

import click

from compassc.cli import options
from compassc.cli.console import artifact
from compassc.cli.tables import tables_text


@click.command(epilog=options.example("compassc passes\ncompassc build kernel.py --print-after Simplify"))
@options.talk_options
def command() -> None:
    """List the passes and the pipelines.

    The names are those that --print-after, --disable-pass and --passes take.
    """
    from compassc.cli.pipeline import pass_tables

    artifact(tables_text(pass_tables()))
