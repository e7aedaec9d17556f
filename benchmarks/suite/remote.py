"""Remote sessions on loopback: what a call, a kernel, bytes and a request of a tracker cost."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
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
    "tls empty": Goal("an empty call over TLS", "us"),
    "tls up": Goal("100 MB to the server over TLS", "GB/s", at_most=False),
    "tls down": Goal("100 MB from the server over TLS", "GB/s", at_most=False),
    "rpcd empty": Goal("an empty call of compass-rpcd", "us", 200),
    "rpcd kernel": Goal("a kernel there", "us", 400),
    "rpcd up": Goal("100 MB to it", "GB/s", 1.0, at_most=False),
    "rpcd down": Goal("100 MB from it", "GB/s", 1.0, at_most=False),
    "search": Goal("speed of a search on three servers here, of one by --jobs 3", "times", 0.8, at_most=False),
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
        found |= _by_tls(Path(folder), tokens) | _in_c(Path(folder), tokens)
        found["search"] = _search(tokens)
        with (
            rpc.Tracker(silent=True, token_file=tokens) as tracker,
            rpc.connect_tracker(tracker.host, tracker.port, token_file=tokens) as known,
        ):
            found["tracker"] = Result(1 / _each(known.summary, 300), "a summary, one after the other")
            where = (tracker.host, tracker.port)
            with rpc.Server(silent=True, tracker_addr=where, key="board", token_file=tokens):
                found["grants"] = Result(1 / _each(lambda: known.request("board").close(), 3, 3), "one server")
    return found


_REQUEST = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout key.pem -out cert.pem"
)


def _by_tls(folder: Path, tokens: Path) -> dict[str, Result]:
    """The same with TLS 1.3, by a certificate that is made here."""
    from compass_runtime import rpc

    words = [*_REQUEST.split(), "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    files = {"certificate": folder / "cert.pem", "private_key": folder / "key.pem"}
    with rpc.Server(silent=True, token_file=tokens, **files) as server:
        session = rpc.connect(server.host, server.port, token_file=tokens, ca=folder / "cert.pem")
        found = {"tls empty": Result(1e6 * _each(lambda: session.do("server.nothing"), 300))}
        up, down = _bytes(session)
        session.close()
    return {**found, "tls up": up, "tls down": down}


def _in_c(folder: Path, tokens: Path) -> dict[str, Result]:
    """The server in C."""
    from compass_runtime import board_server, rpc

    program, *_ = board_server.write(folder / "board")
    command = [program, "--token-file", tokens, "--port", "9091"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as made:
        try:
            assert made.stdout is not None
            port = int(made.stdout.readline().rpartition(":")[2])
            with rpc.connect("127.0.0.1", port, token_file=tokens) as session:
                found = {"rpcd empty": Result(1e6 * _each(lambda: session.do("server.nothing"), 300))}
                a = np.arange(_SIZE, dtype=np.int32)
                ex = BuildManager("X2_1204").build(add)
                function = session.load_bytes(ex.path.read_bytes())["add"]
                there = [session.array(a) for _ in range(3)]
                found["rpcd kernel"] = Result(1e6 * _each(lambda: function(*there, _SIZE), 100))
                found["rpcd up"], found["rpcd down"] = _bytes(session)
        finally:
            made.terminate()
    return found


def _bytes(session: Any) -> tuple[Result, Result]:
    """100 MB there and back."""
    content = np.random.default_rng(0).integers(0, 255, _BYTES, np.uint8)
    array, flat = session.array(content), np.empty_like(content)
    up = Result(_BYTES / 1e9 / _each(lambda: array.copyfrom(content), 1, 5))
    down = Result(_BYTES / 1e9 / _each(lambda: session.read_into(array, flat), 1, 5))
    assert (flat == content).all()
    return up, down


def _search(tokens: Path) -> Result:
    """Seconds of a search by three processes on this machine, in terms of those that run candidates on three servers of it."""
    from compass_runtime import rpc

    source = Path(__file__).parents[2] / "tests" / "tuning" / "tuned_kernel.py"
    command = [sys.executable, "-m", "compassc", "tune", f"{source}:twofold", "--set", "n=4096", "--trials", "48"]
    environment = {**os.environ, "COMPASS_RPC_TOKENS": str(tokens)}
    with rpc.Tracker(silent=True, token_file=tokens) as tracker, ExitStack() as stack:
        where = (tracker.host, tracker.port)
        for _ in range(3):
            stack.enter_context(rpc.Server(silent=True, tracker_addr=where, key="board", token_file=tokens))
        seconds = []
        for more in ([], ["--tracker", f"{where[0]}:{where[1]}", "--key", "board"]):
            records = stack.enter_context(tempfile.TemporaryDirectory())
            start = time.perf_counter()
            words = [*command, "--jobs", "3", "-o", f"{records}/records.jsonl", *more]
            subprocess.run(words, env=environment, check=True, capture_output=True)
            seconds.append(time.perf_counter() - start)
    here, there = seconds
    return Result(here / there, f"{there:.1f} s there, {here:.1f} s here")


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
    found["up"], found["down"] = _bytes(session)
    session.close()
    return found
