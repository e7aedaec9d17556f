"""Files: written whole or not at all, through links, into what is no regular file; read up to a limit; folders held."""

import ast
import errno
import os
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_core import files
from compass_core.errors import CompassError
from compass_core.files.pieces import Piece, Pieces, Stored, same, start_of
from compass_core.reading.limits import Limit
from tests import sources


@pytest.fixture
def fifo(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def limit(most: int) -> Limit:
    return Limit(most, "bytes", "a thing")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("content", [b"abc", "abc", bytearray(b"abc"), lambda path: path.write_text("abc")])
def test_every_kind_of_content_is_written_whole(tmp_path, content):
    path = files.write(tmp_path / "new" / "a", content)
    assert path.read_bytes() == b"abc"
    assert names(path.parent) == ["a"]


def test_permissions_stay_and_new_files_follow_umask(tmp_path):
    old = tmp_path / "old"
    old.write_text("x")
    old.chmod(0o640)
    mask = os.umask(0o027)
    try:
        new, program = files.write(tmp_path / "new", b""), files.write(tmp_path / "program", b"", 0o777)
        files.write(old, b"y")
    finally:
        os.umask(mask)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (old, new, program)] == [0o640, 0o640, 0o750]


def test_links_are_written_through(tmp_path):
    (tmp_path / "real").mkdir()
    target, link, dangling = tmp_path / "real" / "a", tmp_path / "link", tmp_path / "dangling"
    target.write_text("old")
    link.symlink_to("second")
    (tmp_path / "second").symlink_to(target)
    dangling.symlink_to("real/b")
    files.write_all({link: b"new", dangling: b"made"})
    assert link.is_symlink() and dangling.is_symlink()
    assert target.read_text() == "new" and (tmp_path / "real" / "b").read_text() == "made"


def test_a_pipe_stays_a_pipe_and_its_reader_gets_the_bytes(fifo):
    found = []
    reader = threading.Thread(target=lambda: found.append(fifo.read_bytes()))
    reader.start()
    files.write(fifo, b"x" * 200_000)  # more than a pipe holds
    reader.join()
    assert found == [b"x" * 200_000]
    assert stat.S_ISFIFO(fifo.stat().st_mode) and names(fifo.parent) == ["pipe"]


def test_devices_stay_devices(tmp_path):
    ours, theirs = os.openpty()
    device, link = Path(os.ttyname(theirs)), tmp_path / "link"
    link.symlink_to(device)
    before = device.stat()
    for path, content in ((device, b"one"), (link, lambda path: path.write_text("two"))):
        files.write(path, content)
        assert os.read(ours, 100) == _bytes(content)
    assert (before.st_ino, before.st_mode) == (device.stat().st_ino, device.stat().st_mode) and link.is_symlink()
    os.close(ours), os.close(theirs)
    full = Path("/dev/full")
    assert files.is_special(full)
    with pytest.raises(CompassError, match="cannot write '/dev/full': No space") as caught:
        files.write(full, b"x")
    assert caught.value.code == "unwritable"


def _bytes(content: object) -> bytes:
    return content if isinstance(content, bytes) else b"two"


def test_standard_output_is_written_to_wherever_it_goes(tmp_path):
    link = tmp_path / "stdout"  # what /dev/stdout is
    link.symlink_to("/proc/self/fd/1")
    program = "import sys, pathlib; from compass_core import files; files.write(pathlib.Path(sys.argv[1]), b'made\\n')"
    command = [sys.executable, "-c", program, str(link)]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"made\n"
    out = tmp_path / "out"
    with out.open("wb") as file:
        file.write(b"first\n")
        file.flush()
        subprocess.run(command, stdout=file, check=True)
    assert out.read_bytes() == b"first\nmade\n" and link.is_symlink()


def test_of_several_files_all_appear_or_none(tmp_path):
    def fail(_: Path) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_text("old")
    with pytest.raises(CompassError, match=r"cannot write '.*b': No space"):
        files.write_all({tmp_path / "a": b"new", tmp_path / "b": fail})
    assert names(tmp_path) == ["a"] and (tmp_path / "a").read_text() == "old"
    with pytest.raises(CompassError, match="directory"):
        files.write_all({tmp_path / "a": b"new", tmp_path: b""})
    assert (tmp_path / "a").read_text() == "old"


def test_readers_never_see_a_part(tmp_path):
    path = files.write(tmp_path / "a", bytes(100_000))
    stop = threading.Event()
    seen = set()

    def read() -> None:
        while not stop.is_set():
            data = path.read_bytes()
            seen.add((len(data), len(set(data))))

    with ThreadPoolExecutor(4) as pool:
        reading = [pool.submit(read) for _ in range(2)]
        list(pool.map(lambda i: files.write(path, bytes([i]) * 100_000), range(100)))
        stop.set()
    assert all(r.exception() is None for r in reading)
    assert seen == {(100_000, 1)} and names(tmp_path) == ["a"]


def test_names_as_long_as_the_system_allows(tmp_path):
    for name in ("n" * 255, "\u00e9" * 127):
        assert files.write(tmp_path / name, b"x").read_bytes() == b"x"


def test_what_has_no_end_is_refused(tmp_path, fifo):
    for device in ("/dev/zero", "/dev/urandom"):
        with pytest.raises(CompassError, match="it is a device"):
            files.read(Path(device))
    assert files.read(Path(os.devnull)) == b""
    with pytest.raises(CompassError, match="Is a directory"):
        files.read(tmp_path)
    threading.Thread(target=lambda: fifo.write_bytes(b"x" * 1000)).start()
    assert files.read(fifo, limit(1000)) == b"x" * 1000


def test_reading_stops_at_the_limit(tmp_path, fifo):
    path = files.write(tmp_path / "a", b"x" * 100)
    assert files.read(path, limit(100)) == b"x" * 100
    with pytest.raises(CompassError, match="100 bytes, but a thing may have 99 bytes at most") as caught:
        files.read(path, limit(99))
    assert caught.value.code == "limit-exceeded"
    writer = subprocess.Popen(["sh", "-c", f"exec cat /dev/zero > {fifo}"])
    with pytest.raises(CompassError, match="may have 1 MiB at most"):
        files.read(fifo, limit(1 << 20))
    assert writer.wait(10) != 0


def test_a_folder_is_held_by_one_at_a_time(tmp_path):
    folder, inside, most, waited = tmp_path / "new", [], [], []

    def work(_: int) -> None:
        with files.locked(folder, lambda: waited.append(1)):
            inside.append(1)
            most.append(len(inside))
            (folder / "file").write_text("")
            inside.pop()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    assert set(most) == {1}
    with files.locked(folder):
        told = threading.Event()
        other = threading.Thread(target=lambda: _hold(folder, told.set))
        other.start()
        assert told.wait(10)  # it says that it waits
    other.join()


def _hold(folder: Path, waiting) -> None:
    with files.locked(folder, waiting):
        pass


def test_a_lock_ends_with_its_process(tmp_path):
    program = f"from compass_core import files; from pathlib import Path\nwith files.locked(Path({str(tmp_path)!r})):\n  print('held', flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    process.kill()
    process.wait()
    with files.locked(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_told():
    with (
        pytest.raises(CompassError, match="cannot write '/proc/none/at/all': No such file"),
        files.locked(Path("/proc/none/at/all")),
    ):
        pass


def test_no_other_code_writes_files():
    """`compass_core.files` is the only place that opens files for writing. Scratch folders of one process are free."""
    free = {"core/compass_core/files/__init__.py"} | SCRATCH
    names = {str(path.relative_to(sources.ROOT)): path for path in sources.paths()}
    assert not [name for name, path in names.items() if name not in free and _writes(path)]


SCRATCH = {
    "core/compass_core/confine/child.py",
    "core/compass_core/confine/parent.py",
    "core/compass_core/hostcc/provenance.py",
    "compassc/evaluation/running.py",
    "compassc/jupyter.py",
    "compassc/reference/examples.py",
    "compassc/reference/primitives.py",
    "compassc/targets/library.py",
    "compassc/tuning/measure.py",
    "compassc/tuning/records.py",
    "runtime/compass_runtime/host_module.py",
    "core/compass_core/files/cache.py",
    "core/compass_core/errors/defects.py",
    "core/compass_core/hostcc/divisions.py",
    "core/compass_core/hostcc/objects.py",
    "core/compass_core/hostcc/sources.py",
    "runtime/compass_runtime/profile/parse.py",
    "sim/compass_sim/engine.py",
}
"""Files that write into a folder of their own, into the path that `files.write` gave them, to /proc or behind the end."""


def _writes(path: Path) -> bool:
    for node in sources.nodes(path):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        whose = getattr(node.func.value, "id", None) if isinstance(node.func, ast.Attribute) else ""
        if name in ("write_bytes", "write_text", "copyfile", "tofile", "NamedTemporaryFile", "mkstemp"):
            return True
        if (whose, name) in {("os", "replace"), ("os", "rename"), ("np", "save"), ("np", "savez")}:
            return True
        modes = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if name == "open" and whose in ("", "path", "io") and any(set(m) <= set("wxab+t") and m != "" for m in modes):
            return True
    return False


def test_what_a_writer_made_a_program_stays_one(tmp_path):
    def program(path: Path) -> None:
        path.write_text("#!/bin/sh\nexit 7\n")
        path.chmod(0o755)

    assert os.access(files.write(tmp_path / "program", program), os.X_OK)
    assert not os.access(files.write(tmp_path / "text", "text"), os.X_OK)


@pytest.mark.parametrize("size", [0, 9, 10, 5000])
def test_a_view_has_what_reading_gives(tmp_path, monkeypatch, size):
    monkeypatch.setattr(files, "_LARGE", 10)
    path = tmp_path / "a"
    path.write_bytes(os.urandom(size))
    seen = files.view(path)
    assert seen == files.read(path)
    assert seen.readonly
    with pytest.raises(CompassError, match="a thing"):
        files.view(path, limit(size - 1))
    with pytest.raises(CompassError, match="cannot read"):
        files.view(tmp_path / "missing")


@pytest.mark.parametrize(("error", "full"), [(errno.ENOSYS, False), (errno.EPERM, False), (errno.ENOSPC, True)])
def test_a_large_file_is_written_where_blocks_are_not_given_at_once(tmp_path, monkeypatch, error, full):
    """And refused, with nothing left of it, where there is no room."""

    def refused(*_):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "posix_fallocate", refused)
    parts = Pieces([b"ab" * (1 << 20), memoryview(b"cd" * (1 << 20))])
    if full:
        with pytest.raises(CompassError, match="No space left"):
            files.write(tmp_path / "a", parts)
        assert list(tmp_path.iterdir()) == []
    else:
        assert files.write(tmp_path / "a", parts).read_bytes() == bytes(parts)


@st.composite
def pieces(draw, content):
    """The content, cut anywhere; what is made when it is asked for, too."""
    edges = sorted(draw(st.lists(st.integers(0, len(content)), max_size=4)))
    cut = [content[a:b] for a, b in pairwise([0, *edges, len(content)])]
    parts: list[Piece | Pieces] = [memoryview(p) if draw(st.booleans()) else p for p in cut]
    if draw(st.booleans()):
        return Pieces(lambda: parts, len(content))
    first = draw(st.integers(0, len(parts)))
    return Pieces([Pieces(parts[:first]), *parts[first:]])


@given(st.data(), st.binary(max_size=200))
def test_pieces_are_the_bytes_however_they_are_cut(data, content):
    made, others = (data.draw(pieces(content)) for _ in range(2))
    assert bytes(made) == content and len(made) == len(content) and made == content and hash(made) == hash(content)
    assert same(made, others) and same(memoryview(content), made) and start_of(made) == start_of(content)
    at = data.draw(st.integers(0, len(content)))
    other = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] if at < len(content) else content + b"x"
    assert not same(made, data.draw(pieces(other))) and made != other


@given(st.data(), st.binary(max_size=200))
def test_large_pieces_are_written_by_threads(tmp_path_factory, data, content):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_LARGE", 0)
        path = files.write(tmp_path_factory.getbasetemp() / "pieces", data.draw(pieces(content)))
    assert path.read_bytes() == content


def test_what_a_thread_cannot_make_is_told_and_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_LARGE", 0)

    def missing():
        yield b"ab"
        raise CompassError("it is gone")

    with pytest.raises(CompassError, match="it is gone"):
        files.write(tmp_path / "a", Pieces([b"cd", Pieces([Pieces(missing, 4)]), Pieces(lambda: [b"ef"], 2)]))
    assert list(tmp_path.iterdir()) == []


@given(st.data(), st.binary(max_size=200))
def test_parts_of_pieces_are_parts_of_the_bytes(tmp_path_factory, data, content):
    path = tmp_path_factory.getbasetemp() / "stored"
    path.write_bytes(content)
    made, seen = data.draw(st.sampled_from([data.draw(pieces(content)), Stored(FileIO(path), "a")])), content
    for _ in range(3):
        at = slice(data.draw(st.none() | st.integers(-210, 210)), data.draw(st.none() | st.integers(-210, 210)))
        made, seen = made[at], seen[at]
        assert bytes(made) == seen and made == seen and len(made) == len(seen)


@pytest.mark.parametrize("change", [b"shorter than it was", b"a" * 9000, b"b" * 5000])
def test_a_large_file_that_stays_where_it_is_is_the_one_that_was_opened(tmp_path, monkeypatch, change):
    monkeypatch.setattr(files, "_LARGE", 10)
    path = tmp_path / "a"
    path.write_bytes(b"a" * 5000)
    os.utime(path, (1, 1))
    kept = files.stored(path)
    assert isinstance(kept, Stored) and kept == files.read(path)
    files.write(path, change)  # another file of the same name
    assert bytes(kept) == b"a" * 5000
    kept = files.stored(path)
    path.write_bytes(change[:-1] + b"c")  # the same one
    os.utime(path, (2, 2))
    with pytest.raises(CompassError, match="has changed while it was in use"):
        bytes(kept)
    path.write_bytes(b"d" * 5000)
    kept = files.stored(path)
    path.write_bytes(b"e" * 5000)
    os.utime(path, ns=(0, kept._state.written))  # of the same size and time
    for _ in range(2):
        with pytest.raises(CompassError, match="has changed while it was in use"):
            bytes(kept)
    kept = files.stored(path)
    for change_about in (
        lambda: path.chmod(0o640),
        lambda: path.rename(tmp_path / "b"),
        lambda: os.link(tmp_path / "b", path),
    ):
        time.sleep(0.02)
        change_about()
        assert bytes(kept) == b"e" * 5000
    with pytest.raises(CompassError, match="a thing"):
        files.stored(path, limit(4))
    with pytest.raises(CompassError, match="cannot read"):
        files.stored(tmp_path / "missing")


def test_pieces_of_another_size_than_they_said_are_a_mistake():
    with pytest.raises(AssertionError, match="3 bytes were made where there are 4"):
        bytes(Pieces(lambda: [b"abc"], 4))
