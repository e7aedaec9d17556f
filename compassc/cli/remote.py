"""Options of the commands for remote sessions, and what servers say when they start."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from compass_core.errors import UsageError
from compass_runtime.rpc import access
from compass_runtime.rpc.access import parse_address
from compass_runtime.rpc.options import Wanted
from compassc.cli import options
from compassc.cli.console import Console, shown
from compassc.cli.option_types import Given

if TYPE_CHECKING:
    from compass_runtime.rpc.session import Session

token_option = click.option(
    "--token-file",
    type=options.FILE,
    metavar="FILE",
    help="Tokens, one a line with its rights; default: the user's own file.",
)
ca_option = click.option(
    "--ca", type=options.FILE, metavar="FILE", help="Certificates by which other machines are known."
)


def listen_options(port: int) -> options.Decorator:
    """Where a server listens, and what it shows."""
    return options.chain(
        click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at."),
        click.option(
            "--port", type=click.IntRange(0, 65535), default=port, show_default=True, help="First port to try."
        ),
        click.option("--port-end", type=click.IntRange(0, 65536), default=9199, help="End of the ports, not included."),
        token_option,
        click.option(
            "--certificate", type=options.FILE, metavar="FILE", help="Certificate for TLS, needed beyond loopback."
        ),
        click.option("--private-key", type=options.FILE, metavar="FILE", help="Its key, where that is another file."),
        click.option("--silent", is_flag=True, help="No log."),
    )


def start(console: Console, given: dict[str, Any]) -> None:
    """Sets up the log, and names the file of tokens."""
    level = logging.ERROR if given.pop("silent") else logging.INFO
    logging.basicConfig(level=level, stream=sys.stderr, format="%(levelname)s:%(name)s:%(message)s")
    if given["token_file"] is None:
        access.tokens_of(make=True)
    console.say(f"tokens: {shown(given['token_file'] or access.default_file())}")


def run_options(command: Callable[..., object]) -> Callable[..., object]:
    """Where a model runs, other than on this machine."""
    chained = options.chain(
        click.option("--remote", metavar="HOST:PORT", help="Run the model on this server."),
        click.option("--tracker", metavar="HOST:PORT", help="Run it on a server that this tracker gives."),
        click.option("--key", default="", metavar="KEY", help="Kind of that server."),
        click.option(
            "--wait",
            type=click.FloatRange(min=0),
            metavar="SECONDS",
            help="How long to wait for it (default: until it is free).",
        ),
    )
    return chained(command)


def asked_session(console: Console, given: Given) -> Session | None:
    """The session that `run_options` ask for; None where they ask for none."""
    wanted = Wanted(given.pop("remote"), given.pop("tracker"), given.pop("key"), given.pop("wait"))
    return wanted.session(console.say) if wanted else None


def tracker_address(text: str) -> tuple[str, int]:
    """Host and port of a tracker."""
    return parse_address(text)


def no_port(error: ValueError) -> UsageError:
    """The error where every port of the range is taken."""
    return UsageError(str(error), code="rpc-address", help="--port N --port-end M")
