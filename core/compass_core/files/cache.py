"""The cache folder: files named by a hash of all that went into them.

Entries lie in `ROOT/KIND/ab/abcdef...`, each with a file `abcdef....sum` beside it that holds the SHA-256 of its
content: an entry that was damaged since is as good as missing, and made anew. A file appears under its final name only
when it is complete, so that any number of processes may read and write the cache at the same time without locks; what
must not be replaced while it is used is made by one, for whom others wait (`Cache.made`). The modification time of an
entry is the time of its last use.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from compass_core import files, switches
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError

_SUM = ".sum"
_ENTRY = re.compile(r"(?P<group>[0-9a-f]{2})[0-9a-f]{62}(\.[a-z]{1,8})??(?P<sum>\.sum)?")
_UNFINISHED = re.compile(r"\.(?P<group>[0-9a-f]{2})[0-9a-f]{38}\.[0-9]+\.[0-9a-f]{12}\.tmp")
"""The names of files that are written here: see `key_of` and `files.write`."""
_LEFTOVER_AGE = 3600.0
"""Seconds after which an unfinished file belongs to a process that died."""
_LARGE = 1 << 20
"""Bytes from which on a process compares an entry with its sum once, as long as the file stays as it was."""
_USE_KEPT = 60.0
"""Seconds for which a large entry counts as just used."""


def key_of(*parts: str | bytes | memoryview) -> str:
    """A key for contents given as parts, views of single bytes among them: equal only when every part is equal."""
    import hashlib

    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def cache_root() -> Path:
    """The folder of the cache: `COMPASS_CACHE_DIR`, else `$XDG_CACHE_HOME/compass`, else `~/.cache/compass`."""
    named = switches.CACHE_DIR.get()
    if named is not None:
        return named.absolute()
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return (Path(home).expanduser() / "compass").absolute()


def _sum_file(path: Path) -> Path:
    return path.with_name(path.name + _SUM)


def _is_own(path: Path) -> bool:
    """Whether a file was written by a cache: it is called so, and an entry has its sum beside it."""
    name = path.name
    if (unfinished := _UNFINISHED.fullmatch(name)) is not None:
        return unfinished["group"] == path.parent.name
    entry = _ENTRY.fullmatch(name)
    if entry is None or entry["group"] != path.parent.name:
        return False
    return (path if entry["sum"] else _sum_file(path)).stat().st_size <= 64


def _sum(content: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(content).hexdigest().encode()


def _is_whole(path: Path) -> bool:
    """Whether an entry has the content that was put, in which case it now is marked as used. OSError as its files have it."""
    status = path.stat()
    if _compared.get(path) == _state(status) and time.time() - status.st_mtime < _USE_KEPT:
        return True
    if _sum(path.read_bytes()) != _sum_file(path).read_bytes():
        return False
    if status.st_size < _LARGE:
        os.utime(path)
        return True
    # A large one is not marked anew by each process that uses it: the others would have to compare it again.
    if time.time() - status.st_mtime >= _USE_KEPT:
        os.utime(path)
        status = path.stat()
    _compared[path] = _state(status)
    return True


def _state(status: os.stat_result) -> tuple[int, ...]:
    """What changes when a file is written, replaced or marked as used."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@dataclass(frozen=True)
class Entry:
    """One file of the cache: its kind, its size in bytes and the time of its last use (seconds since the epoch)."""

    path: Path
    kind: str
    size: int
    used: float


_compared: dict[Path, tuple[int, ...]] = {}
"""Large entries that this process found whole, and the state of their files then."""
_instead: dict[Path, Path] = {}
"""The folders in the place of caches that cannot be written, as long as this process lasts."""
_going = threading.Lock()
"""Held while one of them is made."""


class Cache:
    """The cache at `root` (default: the user's). The folder is created by the first `put`.

    Where it cannot be written, what is in it is used, and what is put goes to a folder of this process alone; a warning says so once.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_root()

    def path(self, kind: str, key: str) -> Path:
        """The path of the entry of `key`, whether or not it exists."""
        return self.root / kind / key[:2] / key

    def get(self, kind: str, key: str) -> Path | None:
        """The complete file stored under `key`, now marked as used; None when there is none."""
        if self.root in _instead and (own := Cache(_instead[self.root]).get(kind, key)):
            return own
        path = self.path(kind, key)
        try:
            if not _is_whole(path):
                return None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:  # a read-only cache, or another user's: usable, but its times cannot be changed
            return path if os.access(path, os.R_OK) else None
        return path

    def put(self, kind: str, key: str, content: bytes | Callable[[Path], object]) -> Path:
        """Store bytes, or what a function writes to the path it gets; returns the entry. Atomic.

        When several processes put the same key, the last one wins. Where the sum of one meets the content of another,
        and the two differ, the entry counts as damaged.
        """
        if self.root in _instead:
            return Cache(_instead[self.root]).put(kind, key, content)
        path = self.path(kind, key)

        contents: dict[Path, files.Content]
        if callable(content):
            make = content

            def summed(partial: Path) -> None:
                make(partial)
                files.write(_sum_file(path), _sum(partial.read_bytes()))

            contents = {path: summed}
        else:
            contents = {_sum_file(path): _sum(content), path: content}
        try:
            files.write_all(contents)
        except OSError as error:
            return self._elsewhere(error.strerror or str(error)).put(kind, key, content)
        except CompassError as error:
            if error.code != "unwritable":
                raise
            return self._elsewhere(error.message).put(kind, key, content)
        return path

    def made(self, kind: str, key: str, make: Callable[[Path], object]) -> Path:
        """The entry of `key`, which `make` writes where there is none: once, while whoever else asks for it here waits. So nobody
        has an entry replaced that is in use, as `put` may, and a confined program was allowed to read another file then. `make`
        asks for no entry of the same kind, whose folder may be the one that is locked."""
        if (known := self.get(kind, key)) is not None:
            return known
        with ExitStack() as stack:
            with suppress(CompassError):  # where nothing can be locked, nothing can be replaced: `put` goes elsewhere
                stack.enter_context(files.locked(self.path(kind, key).parent))
            return self.get(kind, key) or self.put(kind, key, make)

    def _elsewhere(self, why: str) -> Cache:
        """The cache of this process in the place of one that cannot be written. CompassError when there is no place for
        that either."""
        import atexit
        import logging
        import shutil
        import tempfile

        with _going:
            if self.root in _instead:  # of another thread
                return Cache(_instead[self.root])
            try:
                if self.root in _instead.values():
                    raise OSError(why)
                owner, made = os.getpid(), Path(tempfile.mkdtemp(prefix="compass-cache-"))
            except OSError:
                raise CompassError(
                    f"cannot write to the cache folder '{self.root}': {why}",
                    code="cache-unwritable",
                    help="name a writable folder with COMPASS_CACHE_DIR=DIR",
                ) from None
            _instead[self.root] = made

        def remove() -> None:
            if os.getpid() == owner:  # no child that was forked
                shutil.rmtree(made, ignore_errors=True)

        atexit.register(remove)
        logging.getLogger("Compass").warning(
            "the cache folder '%s' cannot be written (%s): nothing is kept there; COMPASS_CACHE_DIR=DIR names another one",
            self.root,
            why,
        )
        return Cache(made)

    def entries(self) -> Iterator[Entry]:
        """All complete entries; files that vanish while being listed are left out."""
        for path, status in self._files():
            if not path.name.startswith(".") and path.suffix != _SUM:
                yield Entry(path, path.relative_to(self.root).parts[0], status.st_size, status.st_mtime)

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        """The files that were written here, with the sums of entries that are gone: others may lie in the folder, too."""
        for path in self.root.glob("*/??/*"):
            try:
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and _is_own(path):
                    yield path, status
            except OSError:  # gone, or another user's
                continue

    def clear(self) -> int:
        """Remove all entries and unfinished files; returns how many bytes of entries that freed. Other files stay."""
        return self._remove([(path, status.st_size * (path.suffix != _SUM)) for path, status in self._files()])

    def prune(self, limit: int) -> int:
        """Remove the entries used longest ago until at most `limit` bytes remain; returns how many bytes that freed."""
        now = time.time()
        stale = [
            (path, status.st_size)
            for path, status in self._files()
            if path.name.startswith(".") and now - status.st_mtime > _LEFTOVER_AGE
        ]
        kept = sorted(self.entries(), key=lambda entry: entry.used)
        excess = sum(entry.size for entry in kept) - limit
        for entry in kept:
            if excess <= 0:
                break
            stale.append((entry.path, entry.size))
            excess -= entry.size
        return self._remove(stale)

    @staticmethod
    def _remove(found: list[tuple[Path, int]]) -> int:
        for path, _ in found:
            path.unlink(missing_ok=True)
            _sum_file(path).unlink(missing_ok=True)
        return sum(size for _, size in found)
