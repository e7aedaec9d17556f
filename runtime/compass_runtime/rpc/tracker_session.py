"""The client's side of a tracker."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypedDict, TypeVar, cast, final

from compass_core.errors import CompassError
from compass_runtime.rpc import connect
from compass_runtime.rpc.access import Credentials
from compass_runtime.rpc.channel import Channel
from compass_runtime.rpc.connections import opened
from compass_runtime.rpc.errors import RPCError, RPCSessionTimeoutError, damaged, received
from compass_runtime.rpc.session import Session
from compass_runtime.rpc.wire import Kind

T = TypeVar("T")
CONNECT_SECONDS = 60.0
_ANSWER_SECONDS = 30.0


class Queue(TypedDict):
    """How many servers of a key are free, and how many requests for one wait."""

    free: int
    pending: int


class Listed(TypedDict):
    """A server that is at a tracker: `server:` and its key, and where it listens, if it says so."""

    key: str
    addr: tuple[str, int] | None


class Summary(TypedDict):
    """Who is at a tracker."""

    queue_info: dict[str, Queue]
    server_info: list[Listed]


@final
class TrackerSession:
    """A connection to a tracker: who is there, and sessions on servers of a key."""

    def __init__(
        self,
        address: tuple[str, int],
        credentials: Credentials,
        connect_seconds: float = CONNECT_SECONDS,
    ) -> None:
        self._address, self._credentials = address, credentials
        self._channel: Channel | None = None
        self._calls = 0
        self._connect(connect_seconds)

    def _connect(self, seconds: float = CONNECT_SECONDS) -> None:
        """Connects; refused connections are tried again for a while."""
        host, port = self._address
        end, pause = time.monotonic() + seconds, 0.05
        while True:
            try:
                self._channel, welcome = opened(
                    host, port, "client", {"key": ""}, credentials=self._credentials, wait=0
                )
            except RPCError as error:
                if error.code != "rpc-connect":
                    raise
                if time.monotonic() + pause >= end:
                    raise RPCError(
                        f"Failed to connect to server {(host, port)}: {error.message}", code="rpc-connect"
                    ) from None
                time.sleep(pause)
                pause = min(5.0, pause * 2)
                continue
            if welcome.get("is") != "tracker":
                self.close()
                raise RPCError(f"{(host, port)} is not RPC Tracker", code="rpc-stranger")
            return

    def _do(self, name: str, *args: object, wait: float | None = _ANSWER_SECONDS) -> object:
        if self._channel is None:
            self._connect()
        channel = self._channel
        assert channel is not None
        self._calls += 1
        try:
            channel.send(Kind.CALL, self._calls, {"f": name, "v": list(args)})
            frame = channel.receive(wait)
        except BaseException:  # an answer that comes later would be taken for the next one's
            self.close()
            raise
        if frame.call != self._calls or not isinstance(frame.head, dict):
            self.close()
            raise damaged("an answer to something else")
        if frame.kind == Kind.ERROR:
            raise received(frame.head)
        return frame.head.get("v")

    def close(self) -> None:
        """Drops the connection."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def __enter__(self) -> TrackerSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    def summary(self) -> Summary:
        """`queue_info`: free servers and waiting requests by key; `server_info`: key and address of each server."""
        found = self._do("tracker.summary")
        if not isinstance(found, dict) or not {"queue_info", "server_info"} <= found.keys():
            raise damaged("a summary that is none")
        return cast(Summary, found)

    def text_summary(self) -> str:
        """The summary as two tables."""
        return text_of(self.summary())

    def request(
        self,
        key: str,
        priority: int = 1,
        session_timeout: float = 0,
        max_retry: int = 5,
        session_constructor_args: Sequence[object] | None = None,
        *,
        wait: float | None = None,
        waiting: Callable[[str], object] | None = None,
    ) -> Session:
        """A session on a server of the key; requests of higher `priority` come first. It waits until one is free, or `wait`
        seconds; `waiting` is told at once why, where none is. RuntimeError after `max_retry` servers that do not answer."""
        if waiting is not None and (why := _taken(key, self.summary())):
            waiting(why)
        last: CompassError | None = None
        for _ in range(max_retry):
            try:
                granted = self._do("tracker.request", key, priority, wait=wait)
                if not isinstance(granted, list):
                    raise TypeError
                host, port, match = granted
            except (RPCError, OSError) as error:
                if getattr(error, "code", "") == "rpc-silent":
                    raise RPCError(
                        f"no server of the key '{key}' was free within {wait:.1f} seconds", code="rpc-busy"
                    ) from None
                last = error if isinstance(error, CompassError) else None
                continue
            except (TypeError, ValueError):
                raise damaged("a grant that is none") from None
            try:
                return connect(
                    host,
                    port,
                    match,
                    session_timeout,
                    session_constructor_args,
                    token_file=self._credentials.token_file,
                    ca=self._credentials.ca,
                )
            except RPCError as error:
                last = error
        raise RPCError(
            f"Cannot request {key} after {max_retry} retry, last_error:{last.message if last else ''}",
            code="rpc-connect",
        )

    def request_and_run(
        self, key: str, func: Callable[[Session], T], priority: int = 1, session_timeout: float = 0, max_retry: int = 2
    ) -> T:
        """The value of `func` for a session, tried again on another one when it fails."""
        last: RPCError | None = None
        for _ in range(max_retry):
            try:
                with self.request(key, priority, session_timeout) as session:
                    return func(session)
            except RPCSessionTimeoutError:
                raise RPCError(
                    f"Session timeout when running {getattr(func, '__name__', func)}", code="session-over"
                ) from None
            except RPCError as error:
                last = error
        raise RPCError(
            f"Failed to run on {key} after {max_retry} retry, last_error:{last.message if last else ''}",
            code="rpc-lost",
        )


def _taken(key: str, summary: Summary) -> str:
    """Why a request for a server of the key would wait; nothing where one is free."""
    queue = summary["queue_info"].get(key, {"free": 0, "pending": 0})
    if queue["free"] > queue["pending"]:
        return ""
    many = sum(str(one["key"]).partition(":")[2] == key for one in summary["server_info"])
    if not many:
        return f"no server of the key '{key}' is at the tracker"
    others = f", {queue['pending']} others wait" if queue["pending"] else ""
    return f"all servers of the key '{key}' ({many}) are busy{others}"


def text_of(summary: Summary) -> str:
    """A summary as the tables that the framework prints."""
    servers, queues = summary["server_info"], summary["queue_info"]
    rule = "-" * 30 + "\n"
    text = "Server List\n" + rule + "server-address           key\n" + rule
    for one in sorted(servers, key=lambda one: str(one["key"])):
        address = "{}:{}".format(*where) if (where := one.get("addr")) else "None"
        text += f"{address:>21s}    {one['key']}\n"
    total: dict[str, int] = {}
    for one in servers:
        name = str(one["key"]).removeprefix("server:")
        total[name] = total.get(name, 0) + 1
    keys = sorted({*queues, *total})
    width = max([len("key"), *map(len, keys)])
    title = f"{'key':<{width}}   total  free  pending\n"
    lines = ""
    for key in keys:
        counts = queues.get(key, {"free": 0, "pending": 0})
        if total.get(key, 0) or counts["pending"]:
            row = f"{key:<{width}}   {total.get(key, 0):<5}  {counts['free']:<4}  {counts['pending']:<7}"
            lines += row.rstrip() + "\n"
    line = "-" * len(title) + "\n"
    return text + rule + "\nQueue Status\n" + line + title + line + lines + line
