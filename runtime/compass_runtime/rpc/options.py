"""What the options `--remote`, `--tracker`, `--key` and `--wait` of commands ask for."""

from __future__ import annotations

import time
from collections.abc import Callable

from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compass_runtime.rpc import connect, connect_tracker
from compass_runtime.rpc.access import parse_address
from compass_runtime.rpc.errors import RPCError
from compass_runtime.rpc.session import Session
from compass_runtime.rpc.tracker_session import CONNECT_SECONDS, TrackerSession


@dataclass(frozen=True)
class Wanted:
    """A server at an address, or one of a key that a tracker gives; or none. `wait`: seconds to wait for it; None: any.

    UsageError where options do not go together.
    """

    remote: str | None = None
    tracker: str | None = None
    key: str = ""
    wait: float | None = None

    def __post_init__(self) -> None:
        if self.remote is not None and self.tracker is not None:
            raise UsageError(
                "--remote does not go with --tracker", code="remote-run", help="name a server, or a tracker"
            )
        if self.tracker is not None and not self.key:
            raise UsageError("--tracker needs --key", code="remote-run", help="compassc rpc-query lists the keys")
        for option, given in (("--key", bool(self.key)), ("--wait", self.wait is not None)):
            if given and not self:
                raise UsageError(
                    f"{option} needs --remote or --tracker", code="remote-run", help="--remote 127.0.0.1:9090"
                )

    def __bool__(self) -> bool:
        return self.remote is not None or self.tracker is not None

    def session(self, say: Callable[[str], object]) -> Session:
        """A session there. `say` is told at once what is waited for. RPCError where nobody is free in time."""
        end = None if self.wait is None else time.monotonic() + self.wait
        if self.tracker is None:
            where = parse_address(str(self.remote), 9090)
            return connect(*where, key=self.key, wait=self.wait, waiting=_once(say, f"{self.remote} is busy: waiting"))
        with self._tracker(say) as tracker:
            left = None if end is None else max(end - time.monotonic(), 0.0)
            return tracker.request(self.key, wait=left, waiting=lambda why: say(f"{why}: waiting for one"))

    def _tracker(self, say: Callable[[str], object]) -> TrackerSession:
        """The tracker, which may be about to start."""
        host, port = parse_address(str(self.tracker), 9190)
        seconds = CONNECT_SECONDS if self.wait is None else min(self.wait, CONNECT_SECONDS)
        try:
            return connect_tracker(host, port, connect_seconds=0)
        except RPCError as error:
            if error.code != "rpc-connect" or not seconds:
                raise
        say(f"no tracker answers at {host}:{port}: trying for {seconds:g} seconds")
        return connect_tracker(host, port, connect_seconds=seconds)


def _once(say: Callable[[str], object], text: str) -> Callable[[], object]:
    """Says a text when it is called first."""
    texts = [text]
    return lambda: texts and say(texts.pop())
