"""The programs that tests share (tests/served.py) do what those do that are started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from compass_core.confine import child, parent
from compass_core.errors import ToolchainError
from compass_core.hostcc import command, foreign
from compass_core.hostcc.clang import find_clang
from compass_core.hostcc.sources import Source
from tests.served import Confined, Loader, Served

STARTED = command.run
CONFINED = parent._started
LINKER = find_clang().path.with_name("ld.lld")
GOOD, BAD = "int f(int a) { return a + 1; }\n", "int f( { return b; }\n"


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """One that is loaded."""
    monkeypatch.setattr(command, "run", STARTED)
    monkeypatch.setattr(parent, "_started", CONFINED)
    shared = Served(find_clang().path, Loader(find_clang().path, tmp_path))
    (tmp_path / "good.c").write_text(GOOD)
    (tmp_path / "bad.c").write_text(BAD)
    shared.run([str(find_clang().path), "--version"], tmp_path)
    if not shared.is_loaded:
        pytest.skip("this machine's C library cannot have one loaded")
    yield shared
    shared.close()


def line(source: str, output: str) -> list[str]:
    return [str(find_clang().path), "-O2", "-g", "-c", source, "-o", output]


def test_objects_and_messages_are_those_of_a_clang_that_is_started(served: Served, tmp_path: Path) -> None:
    for source in ("bad.c", "none.c", "good.c"):
        assert served.run(line(source, "served.o"), tmp_path) == STARTED(line(source, "started.o"), tmp_path)
    assert (tmp_path / "served.o").read_bytes() == (tmp_path / "started.o").read_bytes()
    assert served.process is not None and served.process.poll() is None


def test_a_crash_is_told(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLVM_DISABLE_SYMBOLIZATION", "1")
    (tmp_path / "crash.c").write_text("#pragma clang __debug llvm_fatal_error\n")
    crash = ["-fno-crash-diagnostics", *line("crash.c", "crash.o")[1:]]
    told, known = (run([str(find_clang().path), *crash], tmp_path) for run in (served.run, STARTED))
    assert told.status == known.status != 0
    assert "fatal error" in told.output


def test_many_threads_may_call_at_once(served: Served, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda i: served.run(line(("good.c", "bad.c")[i % 2], f"{i}.o"), tmp_path), range(8)))
    assert [run.status for run in runs] == [0, 1] * 4
    assert {(tmp_path / f"{i}.o").exists() for i in range(0, 8, 2)} == {True}


def test_where_it_has_ended_clang_is_started(served: Served, tmp_path: Path) -> None:
    assert served.process is not None
    served.process.kill()
    served.process.wait()
    assert served.run(line("good.c", "good.o"), tmp_path) == command.Run(0, "")


@pytest.mark.skipif(not LINKER.exists(), reason="no linker beside clang")
def test_the_linker_may_be_loaded_too(served: Served, tmp_path: Path) -> None:
    served.run(line("good.c", "good.o"), tmp_path)
    linker = Served(LINKER, Loader(find_clang().path, tmp_path))
    for words in (["good.o", "-o"], ["none.o", "-o"]):
        told, known = (
            run([str(LINKER), "-shared", *words, f"{name}.linked"], tmp_path)
            for name, run in (("served", linker.run), ("started", STARTED))
        )
        assert told == known
    assert linker.is_loaded
    linker.close()
    assert (tmp_path / "served.linked").read_bytes() == (tmp_path / "started.linked").read_bytes()


KERNEL = "__kernel void k(__global int* a) { a[0] %s; }\n"
FOREIGN = {
    "a kernel": KERNEL % "+= 1",
    "no kernel": KERNEL % "+= b",
    "a file": '#include "/etc/passwd"\n' + KERNEL % "= 1",
    "a file of the assembler's": '__asm__(".incbin \\"/etc/passwd\\"");\n' + KERNEL % "= 1",
    "too much memory": '__asm__(".space 1 << 40");\n' + KERNEL % "= 1",
}


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str | tuple[object, ...]]:
    """What a confined clang makes of a foreign text, or says of it."""
    try:
        os.close(child.ruleset((), (), ()))
    except child.Refused:
        pytest.skip("this host has no Landlock")

    def examine(text: str) -> str | tuple[object, ...]:
        source = Source("k.cl", "__AIPUX2__", (), (), text)
        try:
            return foreign.examine(source, text, ("-S",))
        except ToolchainError as error:
            return error.code, error.message, error.notes

    return examine


def test_what_is_confined_is_so(
    served: Served, examined: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {name: examined(text) for name, text in FOREIGN.items()}
    calls = []
    monkeypatch.setattr(parent, "_started", lambda *given: calls.append(served.confined(*given)) or calls[-1])
    assert {name: examined(text) for name, text in FOREIGN.items()} == known
    assert "k:" in str(known["a kernel"])
    assert [type(call) for call in calls] == [Confined] * len(FOREIGN)


def test_a_confined_call_that_does_not_end_ends_with_what_is_loaded(
    served: Served, examined: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = FOREIGN["a kernel"]
    known = examined(text)
    monkeypatch.setattr(parent, "_started", served.confined)
    with monkeypatch.context() as patch:
        patch.setattr(foreign, "LIMITS", replace(foreign.LIMITS, output=100))
        assert "it wrote more than" in str(examined(text))
    assert not served.is_loaded and served.process is not None and served.process.poll() is not None
    assert examined(text) == known
