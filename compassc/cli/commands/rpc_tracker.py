"""`compassc rpc-tracker`."""

from __future__ import annotations

from typing import Any

import click

from compassc.cli import options, remote
from compassc.cli.console import Console


@click.command(epilog=options.example("compassc rpc-tracker --port 9190"))
@remote.listen_options(9190)
@options.talk_options
@click.pass_obj
def command(console: Console, /, **given: Any) -> None:
    """Give clients whatever server of a kind is free.

    Servers register under a key, clients ask for one. Runs until interrupted.
    """
    from compass_runtime.rpc.tracker import main

    remote.start(console, given)
    host = given.pop("host")
    ports = given.pop("port"), given.pop("port_end")
    try:
        main(host, *ports, lambda tracker: console.say(f"listening on {host}:{tracker.port}"), **given)
    except ValueError as error:
        raise remote.no_port(error) from None
