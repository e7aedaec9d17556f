"""`compassc targets`."""

from __future__ import annotations

import click

from compassc.cli import options

COLUMNS = ("name", "generation", "cores", "TECs", "LSRAM", "GSRAM", "vector", "device word")


@click.command(epilog=options.example("compassc targets"))
@options.talk_options
def command() -> None:
    """List the NPU configurations.

    LSRAM is per TEC, GSRAM is shared by the TECs of a core; both in bytes.
    """
    from compass_core import targets
    from compassc.cli.console import artifact
    from compassc.cli.tables import table_text

    rows = [
        (
            t.name,
            t.version,
            t.cores,
            t.tecs,
            t.lsram_bytes,
            t.gsram_bytes,
            f"{t.vector_bits} bit",
            f"{t.device_word:#010x}",
        )
        for t in map(targets.load, targets.names())
    ]
    artifact(table_text(("", COLUMNS, rows)))
