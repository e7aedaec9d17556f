"""`compassc records`."""

from __future__ import annotations

from pathlib import Path

import click

from compassc.cli import options
from compassc.cli.console import Console

EXAMPLE = """\
compassc records list records.jsonl
compassc records merge monday.jsonl tuesday.jsonl -o both.jsonl
compassc records prune both.jsonl --keep 3
compassc records diff monday.jsonl tuesday.jsonl"""
ACTIONS = ("list", "merge", "prune", "diff")


@click.command(epilog=options.example(EXAMPLE))
@click.argument("action", type=click.Choice(ACTIONS))
@click.argument("paths", type=options.INPUT, nargs=-1, metavar="FILE.jsonl...")
@click.option("-o", "--output", type=options.OutputPath(), metavar="FILE", help="The file to write (merge, prune).")
@click.option("--keep", type=click.IntRange(1), default=1, metavar="N", help="Best records of a workload (prune).")
@options.talk_options
@click.pass_obj
def command(console: Console, action: str, paths: tuple[Path, ...], output: Path | None, keep: int) -> None:
    """List, merge, prune or compare files of tuning records.

    `list` shows the best of each workload, by default of all files that builds look in. `merge` puts files together, each
    measurement once. `prune` keeps the best of each workload. `diff` compares the best of two files. Lines that are no
    records are told and left out.
    """
    from compassc.cli.recording import run

    run(console, action, paths, output, keep)
