"""`compassc layers`."""

from __future__ import annotations

from pathlib import Path

import click

from compass_core.errors import UsageError
from compass_core.errors.suggest import nearest
from compassc.cli import options
from compassc.cli.console import artifact
from compassc.cli.tables import table_text

COLUMNS = ("layer", "use", "kernels", "what it does")


@click.command(epilog=options.example("compassc layers\ncompassc layers Convolution"))
@click.argument("name", default="", shell_complete=options.names_of("layers"))
@click.option(
    "--write-docs",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the page of every layer type and an index into FOLDER.",
)
@options.talk_options
def command(name: str, write_docs: Path | None) -> None:
    """List the layer types of graphs, and what has kernels.

    With NAME the page of that type, or the types whose name contains it.
    """
    from compassc.layers import docs
    from compassc.layers.declare import all_types

    if write_docs is not None:
        docs.write(write_docs)
        return

    known = {n.lower(): t for n, t in all_types().items()}
    if name.lower() in known:
        artifact(docs.page(known[name.lower()]))
        return
    rows = docs.table(name)
    if not rows:
        near = nearest(name, list(all_types()))
        help = f"did you mean '{near}'?" if near else "`compassc layers` lists them"
        raise UsageError(f"no layer type is called '{name}'", code="unknown-op", help=help)
    artifact(table_text(("", COLUMNS, rows)))
