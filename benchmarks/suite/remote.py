"""Remote sessions on loopback: what a call, a kernel, bytes and a request of a tracker cost."""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.core import Goal, Result
from compassc.dsl import BuildManager
from compassc.dsl import script as S

GOALS = {
    "empty": Goal("an empty call", "us", 200),
    "kernel": Goal("a kernel on 1,000 integers that are there", "us", 400),
    "executor": Goal("the same through an Executor, arrays there and back", "us"),
    "up": Goal("100 MB to the server", "GB/s", 1.0, at_most=False),
    "down": Goal("100 MB from the server", "GB/s", 1.0, at_most=False),
    "session": Goal("a session, from connecting to its end", "ms"),
    "tracker": Goal("requests that a tracker answers", "/s", 1000, at_most=False),
    "grants": Goal("sessions that a tracker gives out, and that are used", "/s"),
}
_BYTES = 100_000_000
_SIZE = 1000


@S.prim_func
def add(a: S.ptr("i32"), b: S.ptr("i32"), out: S.ptr("i32"), n: S.i32):  # type: ignore[valid-type]
    for i in range(n):
        out[i] = a[i] + b[i]


def _each(call: Callable[[], object], count: int, groups: int = 9) -> float:
    """Seconds of a call: the median of groups."""
    call()
    found = []
    for _ in range(groups):
        start = time.perf_counter()
        for _ in range(count):
            call()
        found.append((time.perf_counter() - start) / count)
    return statistics.median(found)


def measure() -> dict[str, Result]:
    from compass_runtime import rpc

    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder, "tokens")
        tokens.touch(0o600)
        tokens.write_text("0123456789abcdef" * 4)
        with rpc.Server(silent=True, token_file=tokens) as server:
            found = _sessions(server, tokens)
        with (
            rpc.Tracker(silent=True, token_file=tokens) as tracker,
            rpc.connect_tracker(tracker.host, tracker.port, token_file=tokens) as known,
        ):
            found["tracker"] = Result(1 / _each(known.summary, 300), "a summary, one after the other")
            where = (tracker.host, tracker.port)
            with rpc.Server(silent=True, tracker_addr=where, key="board", token_file=tokens):
                found["grants"] = Result(1 / _each(lambda: known.request("board").close(), 3, 3), "one server")
    return found


def _sessions(server: Any, tokens: Path) -> dict[str, Result]:
    from compass_runtime import rpc

    def connect():
        return rpc.connect(server.host, server.port, token_file=tokens)

    found = {"session": Result(1e3 * _each(lambda: connect().close(), 5, 3))}
    session = connect()
    found["empty"] = Result(1e6 * _each(lambda: session.do("server.nothing"), 300))
    ex = BuildManager("X2_1204").build(add)
    a, out = np.arange(_SIZE, dtype=np.int32), np.zeros(_SIZE, np.int32)
    function = session.load_bytes(ex.path.read_bytes())["add"]
    there = session.array(a), session.array(a), session.array(out)
    found["kernel"] = Result(1e6 * _each(lambda: function(*there, _SIZE), 100))
    here = 1e6 * _each(lambda: ex(a, a, out, _SIZE), 100)
    ex.rpc_sess = session
    found["executor"] = Result(1e6 * _each(lambda: ex(a, a, out, _SIZE), 100), f"{here:.0f} us on this machine")
    content = np.random.default_rng(0).integers(0, 255, _BYTES, np.uint8)
    array = session.array(content)
    found["up"] = Result(_BYTES / 1e9 / _each(lambda: array.copyfrom(content), 1, 5))
    flat = np.empty_like(content)
    found["down"] = Result(_BYTES / 1e9 / _each(lambda: session.read_into(array, flat), 1, 5))
    assert (flat == content).all()
    session.close()
    return found
