"""Errors of remote sessions; all of them are `RPCError`, as programs for TVM expect."""

from __future__ import annotations

from compass_core.errors import CompassError

OVER = "session-over"
"""The code with which a server says that the time of a session is over."""


class RPCError(CompassError):
    """Something that failed on the other side, or on the way there.

    `remote_type`: the name of the exception's class there; `trace`: its traceback, where the other side gives one.
    """

    remote_type = ""
    trace = ""


class RPCSessionTimeoutError(RPCError, TimeoutError):
    """The time that the session was given is over. The session has ended."""


def damaged(what: str) -> RPCError:
    """The error for bytes that are no message of this protocol."""
    return RPCError(f"the other side sent a damaged message: {what}", code="rpc-protocol")


def lost(where: str, why: str) -> RPCError:
    """The error for a connection that has ended."""
    return RPCError(
        f"the connection to {where} has ended: {why}",
        code="rpc-lost",
        help="what the session held is gone; connect again",
    )


def described(error: BaseException, trace: str = "") -> dict[str, object]:
    """An exception as it goes to the other side."""
    found: dict[str, object] = {
        "type": type(error).__name__,
        "message": str(getattr(error, "message", error)),
        "trace": trace,
    }
    if isinstance(error, CompassError):
        notes = [note.message for note in error.notes]
        place = [str(error.span)] if error.span is not None else []
        found |= {"code": error.code, "help": error.help or "", "notes": place + notes}
    return found


def received(head: object) -> RPCError:
    """The error that the other side described."""
    if not isinstance(head, dict):
        return damaged("an error without a description")
    text = {name: str(head.get(name, ""))[:65536] for name in ("type", "message", "code", "help", "trace")}
    if text["code"] == OVER:
        return RPCSessionTimeoutError(text["message"], code=OVER, help=text["help"])
    notes = head.get("notes")
    error = RPCError(
        f"Error caught from RPC call:\n{text['type']}: {text['message']}",
        code=text["code"],
        notes=tuple(str(note)[:4096] for note in notes[:64]) if isinstance(notes, list) else (),
        help=text["help"],
    )
    error.remote_type, error.trace = text["type"], text["trace"]
    return error
