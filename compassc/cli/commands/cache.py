"""`compassc cache`."""

from __future__ import annotations

import click

from compass_core import switches
from compass_core.files.cache import Cache
from compassc.cli import options
from compassc.cli.console import Console, artifact
from compassc.cli.tables import table_text


@click.command(epilog=options.example("compassc cache\ncompassc cache prune\ncompassc cache clear"))
@click.argument("action", type=click.Choice(["show", "prune", "clear"]), default="show")
@options.talk_options
@click.pass_obj
def command(console: Console, action: str) -> None:
    """Show, shrink or empty the compile cache.

    `prune` removes what was used longest ago until COMPASS_CACHE_LIMIT megabytes are left.
    """
    cache = Cache()
    if action != "show":
        freed = cache.clear() if action == "clear" else cache.prune(switches.CACHE_LIMIT.get() << 20)
        console.say(f"freed {freed} bytes in {cache.root}")
        return
    sizes: dict[str, list[int]] = {}
    for entry in cache.entries():
        sizes.setdefault(entry.kind, []).append(entry.size)
    rows = [(kind, len(found), sum(found)) for kind, found in sorted(sizes.items())]
    rows.append(("total", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    artifact(table_text((str(cache.root), ("kind", "files", "bytes"), rows)))
