"""`compassc doctor`."""

from __future__ import annotations

import click

from compassc.cli import options
from compassc.cli.console import artifact
from compassc.cli.tables import table_text


@click.command(epilog=options.example("compassc doctor"))
@click.option("--clang", metavar="FILE", help="Look at this clang only.")
@options.talk_options
@click.pass_context
def command(ctx: click.Context, clang: str | None) -> None:
    """Show which tools were found, what is missing and how to get it.

    Exit status 3 when something needed is missing.
    """
    from compassc.cli.examination import examine

    findings = examine(clang)
    rows = [("ok" if f.ok else "MISSING" if f.needed else "-", f.what, f.detail) for f in findings]
    artifact(table_text(("", ("state", "what", "found"), rows)))
    missing = [f for f in findings if f.needed and not f.ok]
    if missing:
        artifact("\n" + "".join(f"{f.what}: {f.remedy}\n" for f in missing))
        ctx.exit(3)
