"""`compassc explain`."""

from __future__ import annotations

import click

from compass_core.errors import UsageError
from compassc.cli import options
from compassc.cli.console import artifact


@click.command(epilog=options.example("compassc explain\ncompassc explain type-change"))
@click.argument("code", default="", shell_complete=options.names_of("codes"))
@options.talk_options
def command(code: str) -> None:
    """Explain an error code, with a wrong and a right example.

    The code stands in brackets behind the message of an error. Without CODE all of them are listed.
    """
    from compassc.errors import catalogue, explained

    rows = catalogue()
    code = code.strip("[]")
    if code in rows:
        artifact(explained(rows[code]))
        return
    if code:
        from compass_core.errors.suggest import help_for

        raise UsageError(f"no error has the code '{code}'", code="unknown-code", help=help_for(code, rows, "codes"))
    from compassc.cli.tables import tables_text

    sections: dict[str, list[tuple[str, str]]] = {}
    for row in rows.values():
        sections.setdefault(row.section, []).append((row.code, row.title))
    artifact(tables_text([(name, ("code", "meaning"), items) for name, items in sections.items()]))
