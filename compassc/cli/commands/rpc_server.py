"""`compassc rpc-server`."""

from __future__ import annotations

from typing import Any

import click

from compass_core.errors import UsageError
from compass_runtime.rpc.limits import Quota
from compassc.cli import options, remote
from compassc.cli.console import Console

EXAMPLE = """\
compassc rpc-server --port 9090
compassc rpc-server --tracker 127.0.0.1:9190 --key board"""


@click.command(epilog=options.example(EXAMPLE))
@remote.listen_options(9090)
@click.option("--tracker", metavar="HOST:PORT", help="Tracker at which it registers, under the key.")
@click.option("--key", default="", help="What kind of device this is; clients ask for it.")
@click.option("--through-proxy", is_flag=True, help="Host and port are a proxy's: connect to it.")
@click.option("--load-library", metavar="LIB[:LIB]", help="Shared libraries to load first.")
@click.option("--custom-addr", metavar="HOST[:PORT]", help="Address that the tracker gives to clients.")
@click.option("--driver", metavar="LIBRARY", help="Run on a real NPU, by its driver's library (libaipudrv.so).")
@remote.ca_option
@click.option("--sessions", type=click.IntRange(1, 1000), default=1, show_default=True, help="Clients at once.")
@click.option(
    "--memory", type=click.IntRange(1), default=4096, show_default=True, metavar="MB", help="Of a session's tensors."
)
@click.option(
    "--disk", type=click.IntRange(1), default=4096, show_default=True, metavar="MB", help="Of a session's files."
)
@click.option(
    "--call-seconds", type=click.FloatRange(0, min_open=True), default=600.0, show_default=True, help="Limit of a call."
)
@click.option(
    "--session-seconds", type=click.FloatRange(0), default=86400.0, show_default=True, help="Limit of a session."
)
@click.option(
    "--idle-seconds",
    type=click.FloatRange(0, min_open=True),
    default=3600.0,
    show_default=True,
    help="Between two calls.",
)
@options.talk_options
@click.pass_obj
def command(
    console: Console,
    /,
    tracker: str | None,
    custom_addr: str | None,
    through_proxy: bool,
    load_library: str | None,
    **given: Any,
) -> None:
    """Offer this machine's simulator to other programs and machines.

    Clients show a token; each has a process and a folder of its own. Beyond loopback TLS is needed. Runs until interrupted.
    """
    from compass_runtime.rpc.server import Offer, load, main

    if tracker is not None and not given["key"]:
        raise UsageError(
            "Need key to present type of resource when tracker is available", code="rpc-key", help="--key board"
        )
    address = None if tracker is None else remote.tracker_address(tracker)
    remote.start(console, given)
    seconds = {name: given.pop(name) for name in ("call_seconds", "session_seconds", "idle_seconds")}
    memory, disk = given.pop("memory") << 20, given.pop("disk") << 20
    quota = Quota(memory=memory, disk=disk, sessions=given.pop("sessions"), **seconds)
    load(load_library.split(":") if load_library else ())
    offer = Offer(tracker=address, announced=custom_addr, proxied=through_proxy, quota=quota, **given)
    how = "by the proxy at" if through_proxy else "listening on"
    try:
        main(offer, lambda server: console.say(f"{how} {offer.host}:{server.port}"))
    except ValueError as error:
        raise remote.no_port(error) from None
