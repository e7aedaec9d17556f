"""`compassc rpc-query`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from compass_runtime.rpc import connect_tracker
from compass_runtime.rpc.access import parse_address
from compass_runtime.rpc.tracker_session import text_of
from compassc.cli import options, remote
from compassc.cli.console import Console, artifact


@click.command(epilog=options.example("compassc rpc-query --port 9190"))
@click.option("--host", metavar="HOST", help="The tracker's address; default: TVM_TRACKER_HOST, else 127.0.0.1.")
@click.option("--port", type=click.IntRange(1, 65535), help="Its port; default: TVM_TRACKER_PORT, else 9190.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@remote.token_option
@remote.ca_option
@options.talk_options
@click.pass_obj
def command(
    console: Console, host: str | None, port: int | None, as_json: bool, token_file: Path | None, ca: Path | None
) -> None:
    """Show the servers that a tracker knows, and who waits."""
    import json

    host = host or os.environ.get("TVM_TRACKER_HOST", "127.0.0.1")
    host, number = parse_address(f"{host}:{port or os.environ.get('TVM_TRACKER_PORT', '9190')}")
    with connect_tracker(host, number, token_file=token_file, ca=ca, connect_seconds=5) as tracker:
        found = tracker.summary()
    if as_json:
        artifact(json.dumps(found, indent=1) + "\n")
    else:
        artifact(f"Tracker address {host}:{number}\n\n{text_of(found)}\n")
