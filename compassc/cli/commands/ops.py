"""`compassc ops`."""

from __future__ import annotations

from pathlib import Path

import click

from compass_core.errors import UsageError
from compass_core.errors.suggest import nearest
from compassc.cli import options
from compassc.cli.console import artifact
from compassc.cli.tables import table_text
from compassc.dsl import script

COLUMNS = ("operation", "group", "parameters", "what it does")


@click.command(epilog=options.example("compassc ops\ncompassc ops vadd\ncompassc ops --coverage SPEC_DIR"))
@click.argument("name", default="", shell_complete=options.names_of("operations"))
@click.option(
    "--coverage",
    metavar="SPEC_DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Print the names and signatures that the specification in SPEC_DIR has and the language lacks; "
    "exit status 1 if there are any.",
)
@click.option(
    "--write-docs",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the page of every operation and an index into FOLDER.",
)
@options.talk_options
def command(name: str, coverage: Path | None, write_docs: Path | None) -> None:
    """List the operations of the language.

    With NAME the page of that operation, or the operations whose name contains it.
    """
    if coverage is not None:
        _print_missing(coverage)
        return
    if write_docs is not None:
        from compassc.reference.pages import write

        write(write_docs)
        return
    from compassc.ops import docs

    known = {op.name: op for op in docs.documented()}
    if name in known:
        from compassc.reference.pages import page

        artifact(page(known[name]))
        return
    found = [op for op in known.values() if name in op.name]
    if not found:
        near = nearest(name, known)
        help = f"did you mean '{near}'?" if near else "`compassc ops` lists them"
        raise UsageError(f"no operation is called '{name}'", code="unknown-op", help=help)
    rows = [
        (f"S.{op.name}", op.group, "".join(docs.usage(op).partition("(")[1:]), op.doc.strip().partition("\n")[0])
        for op in found
    ]
    artifact(table_text(("", COLUMNS, rows)))


def _print_missing(folder: Path) -> None:
    from compassc.ops.coverage import missing

    lines = missing(folder, script)
    if lines:
        artifact("".join(f"{line}\n" for line in lines))
        raise SystemExit(1)
