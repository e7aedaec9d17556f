"""Sessions by way of a server: it connects to another one, and passes on what client and session say."""

from __future__ import annotations

import selectors
from typing import TYPE_CHECKING

from compass_core.errors import CompassError
from compass_runtime.rpc.access import Credentials, Token
from compass_runtime.rpc.channel import Channel
from compass_runtime.rpc.connections import opened
from compass_runtime.rpc.errors import RPCError, lost
from compass_runtime.rpc.wire import Kind

if TYPE_CHECKING:
    from compass_runtime.rpc.server import Offer

RIGHT = "connect"
NAME = "rpc.Connect"


def hop(wanted: object, offer: Offer, token: Token, seconds: float, client: Channel) -> Channel | None:
    """The connection to the server that a client asks for (`["rpc.Connect", HOST, PORT, KEY, ...]`); None where he asks for none.
    As long as that server lets him wait he is told so, and nobody waits for a client that has gone.
    RPCError where this server makes no such session, or the token does not allow it."""
    if not wanted:
        return None
    if not isinstance(wanted, list) or wanted[0] != NAME:
        name = wanted[0] if isinstance(wanted, list) else wanted
        raise RPCError(f"the server makes no sessions by {name!r:.100}", code="rpc-call", help=f"it knows {NAME}")
    host, port, key = (*wanted[1:4], "", "", "")[:3]
    if not isinstance(host, str) or type(port) is not int or not 0 < port < 65536 or not isinstance(key, str):
        raise RPCError(f"{NAME} takes a host, a port and a key", code="rpc-call")
    if RIGHT not in token.rights:
        raise RPCError(
            "this token does not allow sessions on other servers",
            code="rpc-right",
            help=f"whoever runs the server can add the right '{RIGHT}' to the token",
        )

    about = {"key": key, "session_timeout": seconds}
    shown = Credentials(ca=offer.ca, token=token)  # the client's own: by another one he would get the rights of that
    try:
        channel, welcome = opened(
            host, port, "client", about, credentials=shown, wait=None, waiting=lambda: still_waits(client)
        )
    except CompassError as error:
        if client.is_closed:
            raise
        raise RPCError(f"from there: {error.message}", code="rpc-connect", help=error.help or "") from None
    if "is" in welcome:
        channel.close()
        raise RPCError(f"{host}:{port} is a {welcome['is']}", code="rpc-stranger")
    return channel


def still_waits(client: Channel) -> None:
    """Tells a client that he has to wait. RPCError (`rpc-lost`) when he has gone."""
    if client.peeked() and not client.is_ahead:
        client.close()
        raise lost(client.where, "the client went while it waited")
    client.send(Kind.WAIT, 0, {})


def relay(one: Channel, other: Channel) -> None:
    """Passes on what comes from either side, until one goes: first what was read ahead with the greetings. Each side of a session
    speaks when the other one waits."""
    with selectors.DefaultSelector() as selector:
        for here, there in ((one, other), (other, one)):
            if not _passed(here, there):
                return
            selector.register(here.sock, selectors.EVENT_READ, (here, there))
        while True:
            for key, _ in selector.select():
                if not _passed(*key.data):
                    return


def _passed(here: Channel, there: Channel) -> bool:
    """Passes on what is there; False at the end of either side."""
    try:
        while data := here.unread():
            there.pass_on(data)
            if not here.holds_more:
                return True
        return data is None
    except RPCError:
        return False
