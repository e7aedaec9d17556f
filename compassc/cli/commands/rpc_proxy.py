"""`compassc rpc-proxy`."""

from __future__ import annotations

from typing import Any

import click

from compassc.cli import options, remote
from compassc.cli.console import Console

EXAMPLE = """\
compassc rpc-proxy --port 9090
compassc rpc-proxy --port 9090 --tracker 127.0.0.1:9190"""


@click.command(epilog=options.example(EXAMPLE))
@remote.listen_options(9090)
@click.option("--tracker", metavar="HOST:PORT", help="Tracker at which it registers its servers.")
@remote.ca_option
@options.talk_options
@click.pass_obj
def command(console: Console, /, tracker: str | None, **given: Any) -> None:
    """Bring together clients and servers that nobody reaches.

    Servers connect out to it (compassc rpc-server --through-proxy), clients connect to it as to a server. Runs until interrupted.
    """
    from compass_runtime.rpc.proxy import main

    address = None if tracker is None else remote.tracker_address(tracker)
    remote.start(console, given)
    host = given.pop("host")
    ports = given.pop("port"), given.pop("port_end")
    try:
        main(host, *ports, lambda it: console.say(f"listening on {host}:{it.port}"), tracker=address, **given)
    except ValueError as error:
        raise remote.no_port(error) from None
