"""`compassc explain`."""

from __future__ import annotations

import click

from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for
from compassc.cli import options
from compassc.cli.console import artifact
from compassc.cli.tables import tables_text
from compassc.errors import catalogue, explained


@click.command(epilog=options.example("compassc explain\ncompassc explain type-change"))
@click.argument("code", default="", shell_complete=options.names_of("codes"))
@options.talk_options
def command(code: str) -> None:
    """Explain an error code, with a wrong and a right example.

    The code stands in brackets behind the message of an error. Without CODE all of them are listed.
    """
    rows = catalogue()
    code = code.strip("[]")
    if code in rows:
        artifact(explained(rows[code]))
        return
    if code:
        raise UsageError(f"no error has the code '{code}'", code="unknown-code", help=help_for(code, rows, "codes"))

    sections: dict[str, list[tuple[str, str]]] = {}
    for row in rows.values():
        sections.setdefault(row.section, []).append((row.code, row.title))
    artifact(tables_text([(name, ("code", "meaning"), items) for name, items in sections.items()]))
