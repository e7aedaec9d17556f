"""The clang that tests share (tests/served_clang.py) does what one does that is started."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compass_core.hostcc import command
from compass_core.hostcc.clang import find_clang
from tests.served_clang import ServedClang

STARTED = command.run
GOOD, BAD = "int f(int a) { return a + 1; }\n", "int f( { return b; }\n"


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedClang]:
    """One that is loaded."""
    monkeypatch.setattr(command, "run", STARTED)
    shared = ServedClang(find_clang().path, tmp_path)
    (tmp_path / "good.c").write_text(GOOD)
    (tmp_path / "bad.c").write_text(BAD)
    shared.run([str(find_clang().path), "--version"], tmp_path)
    if not shared.is_loaded:
        pytest.skip("this machine's C library cannot have one loaded")
    yield shared
    shared.close()


def line(source: str, output: str) -> list[str]:
    return [str(find_clang().path), "-O2", "-g", "-c", source, "-o", output]


def test_objects_and_messages_are_those_of_a_clang_that_is_started(served: ServedClang, tmp_path: Path) -> None:
    for source in ("bad.c", "none.c", "good.c"):
        assert served.run(line(source, "served.o"), tmp_path) == STARTED(line(source, "started.o"), tmp_path)
    assert (tmp_path / "served.o").read_bytes() == (tmp_path / "started.o").read_bytes()
    assert served.process is not None and served.process.poll() is None


def test_a_crash_is_told(served: ServedClang, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLVM_DISABLE_SYMBOLIZATION", "1")
    (tmp_path / "crash.c").write_text("#pragma clang __debug llvm_fatal_error\n")
    crash = ["-fno-crash-diagnostics", *line("crash.c", "crash.o")[1:]]
    told, known = (run([str(find_clang().path), *crash], tmp_path) for run in (served.run, STARTED))
    assert told.status == known.status != 0
    assert "fatal error" in told.output


def test_many_threads_may_call_at_once(served: ServedClang, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda i: served.run(line(("good.c", "bad.c")[i % 2], f"{i}.o"), tmp_path), range(8)))
    assert [run.status for run in runs] == [0, 1] * 4
    assert {(tmp_path / f"{i}.o").exists() for i in range(0, 8, 2)} == {True}


def test_where_it_has_ended_clang_is_started(served: ServedClang, tmp_path: Path) -> None:
    assert served.process is not None
    served.process.kill()
    served.process.wait()
    assert served.run(line("good.c", "good.o"), tmp_path) == command.Run(0, "")
