"""`compassc ops`."""

from __future__ import annotations

import click

from compassc.cli import options

COLUMNS = ("operation", "group", "parameters", "what it does")


@click.command(epilog=options.example("compassc ops\ncompassc ops vadd"))
@click.argument("name", default="")
@options.talk_options
def command(name: str) -> None:
    """List the operations of the language.

    With NAME only those whose name contains it.
    """
    from compass_core.errors import UsageError
    from compass_core.suggest import help_for
    from compassc.cli.tables import table_text
    from compassc.cli.talk import artifact
    from compassc.ops import core

    known = core.load()
    found = [op for _, op in sorted(known.items()) if name in op.name]
    if not found:
        raise UsageError(
            f"no operation is called '{name}'", code="unknown-op", help=help_for(name, known, "operations")
        )
    rows = [(f"S.{op.name}", op.group, str(op.signature), op.doc.strip().partition("\n")[0]) for op in found]
    artifact(table_text(("", COLUMNS, rows)))
