"""`compassc passes`."""

from __future__ import annotations

import click

from compassc.cli import options


@click.command(epilog=options.example("compassc passes\ncompassc build kernel.py --print-after simplify"))
@options.talk_options
def command() -> None:
    """List the passes and the pipelines.

    The names are those that --print-after, --disable-pass and --passes take.
    """
    from compassc import passes
    from compassc.cli.tables import tables_text
    from compassc.cli.talk import artifact

    rows = [(name, stage, doc) for name, doc, stage in passes.describe()]
    pipelines = [(stage, ",".join(passes.pipeline_names(stage))) for stage in ("lower", "codegen")]
    tables = [("passes", ("name", "stage", "what it does"), rows), ("pipelines", ("stage", "passes"), pipelines)]
    artifact(tables_text(tables))
