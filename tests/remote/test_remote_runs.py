"""Kernels, models and commands that run on a server give what they give here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from remote_kernels import add, say
from remote_peers import PORTS

from compass_runtime import rpc
from compass_runtime.cli import command
from compass_runtime.rpc.limits import Quota
from compassc.dsl import BuildManager


@pytest.fixture
def ex() -> Any:
    return BuildManager("X2_1204").build(add)


def operands(size: int = 100) -> tuple[np.ndarray[Any, Any], ...]:
    return np.arange(size, dtype=np.int32), np.full(size, 3, np.int32), np.zeros(size, np.int32)


@pytest.mark.parametrize("size", [100, 1 << 20], ids=["with the call", "in pieces"])
def test_an_executor_runs_there(session: rpc.Session, ex: Any, size: int) -> None:
    a, b, out = operands(size)
    ex.rpc_sess = session
    assert ex.rpc_sess is session
    ex(a, b, out, size)
    assert (out == a + b).all()
    ex(a, b, out[::2], 1)  # not in one piece
    assert (out == a + b).all()


def test_what_it_prints_and_its_times(session: rpc.Session, ex: Any, capsys: pytest.CaptureFixture[str]) -> None:
    printing = BuildManager("X2_1204").build(say)
    printing.rpc_sess = session
    printing(np.zeros(8, np.int32), 7)
    assert capsys.readouterr().out == "it is 7\n"
    a, b, out = operands()
    ex.rpc_sess = session
    result = ex.benchmark(a, b, out, 100, repeat=3, number=2)
    assert (out == a + b).all()
    assert len(result.results) == 3 and 0 < result.device.min <= result.max


def test_errors_of_arguments_are_those_of_runs_here(session: rpc.Session, ex: Any) -> None:
    a, b, out = operands()
    ex.rpc_sess = session
    with pytest.raises(RuntimeError, match="takes 4 arguments, 2 given"):
        ex(a, b)
    fixed = out.copy()
    fixed.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        ex(a, b, fixed, 100)
    with pytest.raises(rpc.RPCError) as caught:
        ex(a, b, out, 1000)  # more than the arrays have
    assert caught.value.code == "tensor-size"
    for here in (
        lambda: ex.check(a, b, out, 100),
        lambda: ex.profile(a, b, out, 100),
        lambda: ex.schedule(a, b, out, 100),
    ):
        with pytest.raises(RuntimeError, match="made on this machine"):
            here()
    ex.rpc_sess = None
    ex(a, b, out, 100)
    assert (out == a + b).all()


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, state_folder: Path) -> Iterator[rpc.Tracker]:
    """A tracker with a server, as the environment names them."""
    with rpc.Tracker(**PORTS, silent=True) as tracker:
        where = (tracker.host, tracker.port)
        with rpc.Server(**PORTS, silent=True, tracker_addr=where, key="juno,X2_1204"):
            monkeypatch.setenv("CPS_TVM_RPC_TRACKER_IP", tracker.host)
            monkeypatch.setenv("CPS_TVM_RPC_TRACKER_PORT", str(tracker.port))
            yield tracker


def test_programs_for_the_vendors_packages(board: rpc.Tracker, ex: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from compassc.dsl import get_rpc_session

    a, b, out = operands()
    session = get_rpc_session(rpc_key="juno,X2_1204")
    ex.rpc_sess = session
    ex(a, b, out, 100)
    assert (out == a + b).all()
    session.close()
    monkeypatch.setenv("CPS_DSL", "r=juno,X2_1204")  # every kernel
    asked = BuildManager().build(add)
    out[:] = 0
    asked(a, b, out, 100)
    assert (out == a + b).all() and asked.rpc_sess is not None


def test_a_model_runs_there(session: rpc.Session) -> None:
    import compassc

    graph = Path(__file__).parents[1] / "data" / "graphs" / "lenet" / "default.txt"
    model = compassc.compile(graph, target="X2_1204")
    shape = model.inputs[0].shape
    samples = np.random.default_rng(0).random((2, *shape[1:])).astype(np.float32)
    right = model(samples)
    model.rpc_sess = session
    assert (model(samples) == right).all() and right.any()
    model.rpc_sess = None
    assert (model(samples) == right).all()


def run(*words: object) -> Any:
    return CliRunner().invoke(command, [str(w) for w in words], standalone_mode=False)


def test_compass_run(
    server: rpc.Server, board: rpc.Tracker, kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    a, b, _ = operands()
    np.save("a.npy", a)
    np.save("b.npy", b)
    np.save("sum.npy", a + b)
    given = ("--inputs", "a.npy,b.npy", "--set", "n=100", "--shape", "out=100", "--expect", "sum.npy", "-o", "c.npy")
    there = f"{server.host}:{server.port}"
    for where in (("--remote", there), ("--tracker", f"{board.host}:{board.port}", "--key", "juno,X2_1204")):
        Path("c.npy").unlink(missing_ok=True)
        done = run(kernel, *given, *where, "--repeat", 2)
        assert done.exception is None and done.return_value == 0, done.output
        assert "as expected: out" in done.output and "engine time of 2 runs" in done.output
        assert (np.load("c.npy").reshape(-1) == a + b).all()
    for words, why in (
        (("--remote", there, "--check", "all"), "--check: not on a server"),
        (("--remote", there, "--profile"), "--profile: not on a server"),
        (("--remote", there, "--tracker", there), "does not go with"),
        (("--tracker", there), "needs --key"),
        (("--key", "x"), "needs --remote"),
    ):
        done = run(kernel, *given, *words)
        assert why in str(done.exception)


def test_names_of_the_framework() -> None:
    from compassc.compat import modules

    modules.take_names()
    try:
        import tvm
        from tvm import rpc as theirs
        from tvm.rpc.server import Server
        from tvm.rpc.tracker import Tracker

        assert Tracker is rpc.Tracker
        with Server(**PORTS, silent=True, key="x1", quota=Quota(sessions=2)) as made:
            remote = theirs.connect("127.0.0.1", made.port, key="x1", session_timeout=60)
            assert remote.get_function("rpc.test.addone")(10) == 11
            array = tvm.nd.array(np.ones(4, np.float32), remote.cpu(0))
            assert (array.numpy() == 1).all()
            with pytest.raises(tvm.error.RPCError):
                theirs.connect("127.0.0.1", made.port, key="x1", session_constructor_args=["rpc.NonExist"])
            with pytest.raises(TypeError):
                theirs.connect("127.0.0.1", made.port, key="x1", session_constructor_args="x")
            with pytest.raises(tvm.TVMError, match="cannot find server that matches key=client:x2"):
                theirs.connect("127.0.0.1", made.port, key="x2")
            assert issubclass(tvm.error.RPCSessionTimeoutError, TimeoutError)
    finally:
        modules.give_back_names()


def test_candidates_of_a_search_run_there(board: rpc.Tracker) -> None:
    """They cost what they cost here; faults are the candidates', and a server that is lost is another one's turn."""
    from compassc.tuning import measure, server_pool
    from compassc.tuning.tasks import tasks_of_file

    source = Path(__file__).parents[1] / "tuning" / "tuned_kernel.py"
    (task,) = tasks_of_file(source, "twofold", "X2_1204", {"n": 256})
    candidates = [{"TILE": tile, "SPOILT": spoilt} for tile, spoilt in [(32, 0), (8, 0), (64, 1)]]
    place = server_pool.Place(f"{board.host}:{board.port}", "juno,X2_1204")
    here = measure.measure(task, candidates)
    there = measure.measure(task, candidates, measure.MeasureOptions(place=place))
    assert [(r.cost, r.error) for r in there] == [(r.cost, r.error) for r in here]
    assert [r.error for r in there] == ["", "", "wrong"]
    server_pool._sessions[place].channel.sock.close()
    timed = measure.measure(task, candidates[:1], measure.MeasureOptions("seconds", place=place))
    assert timed[0].ok and timed[0].cost > 0
    server_pool._sessions.pop(place).close()


def test_a_search_on_servers(board: rpc.Tracker, compassc: Any) -> None:
    source = Path(__file__).parents[1] / "tuning" / "tuned_kernel.py"
    where = ("--tracker", f"{board.host}:{board.port}", "--key", "juno,X2_1204")
    done = compassc("tune", f"{source}:twofold", "--set", "n=256", "--trials", 3, "-o", "r.jsonl", *where)
    assert done.status == 0 and "twofold" in done.out, done.err
    for words, why in (
        (where[:2], "given together"),
        ((*where, "--scheduler", "tcp://127.0.0.1:1"), "does not go with --scheduler"),
    ):
        done = compassc("tune", f"{source}:twofold", "--set", "n=256", *words)
        assert done.status == 2 and why in done.err


def test_the_frameworks_tutorial_on_cross_compilation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function for the host of a board: built here, uploaded, run and timed there."""
    from compassc.compat import modules

    allowed = tmp_path / "tokens"
    allowed.write_text("d" * 40 + " llvm\n")
    allowed.chmod(0o600)
    monkeypatch.setenv("COMPASS_RPC_TOKENS", str(allowed))
    modules.take_names()
    try:
        import tvm
        from tvm import rpc as remotes
        from tvm import te

        n = tvm.runtime.convert(1024)
        A = te.placeholder((n,), name="A")
        B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
        func = tvm.build(te.create_schedule(B.op), [A, B], target="llvm", name="add_one")
        path = tmp_path / "lib.tar"
        func.export_library(str(path))
        with remotes.Server(**PORTS, silent=True, key="rasp", token_file=allowed) as server:
            remote = remotes.connect("127.0.0.1", server.port, key="rasp")
            remote.upload(str(path))
            func = remote.load_module("lib.tar")
            dev = remote.cpu()
            a = tvm.nd.array(np.random.default_rng(0).random(1024).astype(A.dtype), dev)
            b = tvm.nd.array(np.zeros(1024, dtype=A.dtype), dev)
            func(a, b)
            np.testing.assert_equal(b.numpy(), a.numpy() + 1)
            time_f = func.time_evaluator(func.entry_name, dev, number=10)
            assert time_f(a, b).mean > 0
    finally:
        modules.give_back_names()
