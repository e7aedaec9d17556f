"""The engine executable: found when built, built where it is missing, and a clear error where that cannot be."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sim_device import Bench

from compass_core.errors import ToolchainError
from compass_core.files.cache import Cache
from compass_sim import engine


@pytest.fixture(scope="module")
def built() -> bytes:
    """The engine of the present sources."""
    return engine.engine_path().read_bytes()


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No engine in the package, and an empty cache folder."""
    monkeypatch.setattr(engine, "PREBUILT", tmp_path / "package" / "compass-worker")
    monkeypatch.setattr(engine, "STAMP", tmp_path / "package" / "compass-worker.stamp")
    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path / "cache"))
    engine.engine_path.cache_clear()
    yield tmp_path
    engine.engine_path.cache_clear()


def test_missing_engine_is_built_into_the_cache_once(fresh: Path) -> None:
    path = engine.engine_path()
    made = path.stat().st_mtime_ns
    assert path.is_relative_to(fresh / "cache") and os.access(path, os.X_OK)
    with Bench() as bench:
        bench.run("__COMPASS_ENTRY(entry) { }")
    engine.engine_path.cache_clear()
    assert engine.engine_path() == path
    assert abs(path.stat().st_mtime_ns - made) < 60e9


def test_engine_of_other_sources_is_not_taken(built: bytes, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Cache().put("engine", engine.source_key(), built)
    engine.PREBUILT.parent.mkdir()
    engine.PREBUILT.write_bytes(b"old")
    engine.STAMP.write_text("0" * 64, encoding="ascii")
    assert engine.engine_path().read_bytes() == built
    monkeypatch.setattr(engine, "build", lambda output: output.write_bytes(built))  # which the test above does
    assert engine.install().read_bytes() == built
    engine.engine_path.cache_clear()
    assert engine.engine_path() == engine.PREBUILT


def test_without_clang_the_error_says_how_to_get_it(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPASS_CLANG", str(fresh / "nothing"))
    with pytest.raises(ToolchainError) as caught:
        engine.engine_path()
    assert caught.value.exit_code == 3 and "COMPASS_CLANG" in caught.value.help
