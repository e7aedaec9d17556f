"""The cache: complete files only, under any number of writers; pruning keeps what was used last."""

import contextlib
import os
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compass_core.errors import CompassError
from compass_core.files.cache import Cache, cache_root, key_of


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


def test_what_is_put_is_got(cache):
    key = key_of("a", b"b")
    assert cache.get("obj", key) is None
    cache.put("obj", key, b"content")
    assert cache.get("obj", key).read_bytes() == b"content"
    cache.put("obj", key, lambda path: path.write_text("other"))
    assert cache.get("obj", key).read_bytes() == b"other"


def test_keys_tell_part_boundaries_apart():
    assert key_of("ab", "c") != key_of("a", "bc")
    assert key_of("a", "b") == key_of(b"a", b"b")


def test_a_writer_that_fails_leaves_nothing(cache):
    def fail(path: Path) -> None:
        path.write_text("half")
        raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError):
        cache.put("obj", key_of("x"), fail)
    assert not [path for path in cache.root.rglob("*") if path.is_file()]


def test_parallel_writers_and_readers_see_complete_files(cache):
    key = key_of("shared")
    content = b"x" * 300_000

    def work(_: int) -> bool:
        cache.put("obj", key, content)
        return cache.get("obj", key).read_bytes() == content

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(40)))
    assert [entry.kind for entry in cache.entries()] == ["obj"]


FOREIGN = (
    "notes.txt",
    "data/notes.txt",
    "photos/01/a.jpg",
    "projects/ab/kernel.py",
    f"repository/ab/ab{'0' * 62}",
    f"repository/ab/cd{'0' * 62}.sum",
    f"objects/ab/{'c' * 38}",
    "projects/ab/.hidden",
    "projects/ab/.kernel.py.12.tmp",
    f"deep/ab/ab{'0' * 62}/file",
)


@pytest.mark.parametrize("action", ["clear", "prune"])
def test_only_what_a_cache_wrote_is_removed(cache, compassc, monkeypatch, action):
    """From a folder that somebody also keeps other things in: files of any names, also such as other stores give."""
    monkeypatch.setenv("COMPASS_CACHE_DIR", str(cache.root))
    for name in FOREIGN:
        (cache.root / name).parent.mkdir(parents=True, exist_ok=True)
        (cache.root / name).write_bytes(b"mine" * 100)
    key = key_of("x")
    own = [cache.put("obj", key, b"content"), cache.put("kernel", f"{key}.py", b"content")]
    unfinished = own[0].with_name(f".{key[:40]}.12.{'0' * 12}.tmp")
    alone = own[0].with_name(f"{key[:2]}{'1' * 62}.sum")
    unfinished.write_bytes(b"half")
    alone.write_bytes(b"0" * 64)
    assert sorted(entry.path for entry in cache.entries()) == sorted(own)
    if action == "clear":
        assert compassc("cache", "clear").status == 0
        assert not unfinished.exists() and not alone.exists()
    else:
        cache.prune(0)
    assert {str(p.relative_to(cache.root)) for p in cache.root.rglob("*") if p.is_file() and p != alone} == {
        *FOREIGN,
        *([str(unfinished.relative_to(cache.root))] if action == "prune" else []),
    }


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"", lambda data: b"X" + data[1:]])
@pytest.mark.parametrize("what", ["content", "sum"])
def test_a_damaged_entry_is_as_good_as_missing(cache, damage, what):
    path = cache.put("obj", key_of("x"), b"content")
    damaged = path if what == "content" else path.with_name(path.name + ".sum")
    damaged.write_bytes(damage(damaged.read_bytes()))
    assert cache.get("obj", key_of("x")) is None
    cache.put("obj", key_of("x"), b"content")
    assert cache.get("obj", key_of("x")).read_bytes() == b"content"


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"X" + data[1:]])
def test_a_large_entry_is_read_again_when_its_file_is_another(cache, monkeypatch, damage):
    key, content, read = key_of("x"), bytes(1 << 20), list[Path]()
    path, whole = cache.put("pch", key, content), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda file: (read.append(file), whole(file))[1])
    for _ in range(3):
        assert cache.get("pch", key) == path
    assert read.count(path) == 1
    path.write_bytes(damage(content))
    os.utime(path)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))  # times of files are those of the clock's last tick
    assert cache.get("pch", key) is None
    cache.put("pch", key, content)
    assert cache.get("pch", key) == path
    os.utime(path, (1000, 1000))
    assert cache.get("pch", key) == path
    assert path.stat().st_mtime > 1000, "that it was used is to be seen, to the minute"


def test_prune_removes_what_was_used_longest_ago(cache):
    for age, name in enumerate(["newest", "middle", "oldest"]):
        path = cache.put("obj", key_of(name), bytes(100))
        os.utime(path, (1000 - age, 1000 - age))
    cache.get("obj", key_of("oldest"))
    assert cache.prune(200) == 100
    assert cache.get("obj", key_of("middle")) is None
    assert cache.get("obj", key_of("oldest")) is not None
    assert cache.clear() == 200
    assert list(cache.entries()) == []


def test_root_follows_the_switch_then_xdg(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("COMPASS_CACHE_DIR", raising=False)
    assert cache_root() == tmp_path / "xdg" / "compass"
    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_root() == tmp_path / "mine"


def test_nowhere_to_write_to_is_explained(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("tempfile.tempdir", "/proc/none")
    with pytest.raises(CompassError, match="cache folder") as caught:
        Cache(tmp_path / "file" / "cache").put("obj", key_of("x"), b"")
    assert "COMPASS_CACHE_DIR" in caught.value.help


def test_a_cache_that_cannot_be_written_is_gone_without(caplog):
    wanted = Cache(Path("/proc/none"))
    first, second = wanted.put("kind", "aa1", b"one"), Cache(Path("/proc/none")).put("kind", "bb2", b"two")
    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two")
    assert wanted.get("kind", "aa1") == first and wanted.get("kind", "cc3") is None
    assert [r.message.count("'/proc/none' cannot be written") for r in caplog.records] == [1]


def test_threads_that_cannot_write_it_share_a_folder(caplog, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    cache, both, make = Cache(tmp_path / "file" / "cache"), threading.Barrier(2), tempfile.mkdtemp

    def made(**given):
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.1)  # both are here, if both may be
        return make(**given)

    monkeypatch.setattr(tempfile, "mkdtemp", made)
    with ThreadPoolExecutor(2) as pool:
        paths = [*pool.map(lambda key: cache.put("kind", key, b""), ("aa1", "bb2"))]
    assert paths[0].parents[2] == paths[1].parents[2]
    assert len(caplog.records) == 1


def test_a_cache_that_is_no_folder_is_empty(tmp_path):
    (tmp_path / "file").write_text("")
    assert Cache(tmp_path / "file").get("kind", "aa1") is None
    assert Cache(tmp_path / "file").put("kind", "aa1", b"one").read_bytes() == b"one"


def test_an_entry_that_is_made_for_several_is_made_once(cache):
    """All get the file that the first one made, which none of them replaces."""
    makers, first = [], threading.Event()

    def make(path):
        makers.append(path)
        first.set()
        time.sleep(0.05)  # the others ask meanwhile
        path.write_bytes(b"made")

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(cache.made, "pch", key_of("header"), make)]
        first.wait()
        asked += [pool.submit(cache.made, "pch", key_of("header"), make) for _ in range(3)]
        found = {one.result() for one in asked}
    assert len(makers) == 1 and found == {cache.path("pch", key_of("header"))}
    assert cache.get("pch", key_of("header")).read_bytes() == b"made"


def test_what_is_made_where_nothing_can_be_written_is_of_this_process(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    found = Cache(tmp_path / "file" / "cache").made("pch", key_of("header"), lambda path: path.write_bytes(b"made"))
    assert found.read_bytes() == b"made" and tmp_path not in found.parents
