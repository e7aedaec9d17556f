"""`compassc targets`."""

from __future__ import annotations

import click

from compass_core import targets
from compassc.cli import options
from compassc.cli.console import artifact
from compassc.cli.tables import table_text
from compassc.targets.kind import kind, kinds

KINDS = ("kind", "device", "for", "options")
COLUMNS = ("name", "generation", "cores", "TECs", "LSRAM", "GSRAM", "vector", "device word")


@click.command(epilog=options.example("compassc targets"))
@options.talk_options
def command() -> None:
    """List the NPU configurations and kinds of targets.

    LSRAM is per TEC, GSRAM is shared by the TECs of a core; both in bytes. A kind has its options after it: "llvm -num-cores=2".
    """
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
    described = [
        (k.name, k.device, k.help, ", ".join(f"-{name}={_shown(o.default)}" for name, o in k.options.items()))
        for k in map(kind, kinds())
    ]
    artifact(f"{table_text(('', COLUMNS, rows))}\n{table_text(('', KINDS, described))}")


def _shown(default: object) -> str:
    return "" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
