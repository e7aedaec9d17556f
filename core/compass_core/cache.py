"""The cache folder: files named by a hash of all that went into them.

Entries lie in `ROOT/KIND/ab/abcdef...`. A file appears under its final name only when it is complete (written beside
it, then renamed), so that any number of processes may read and write the cache at the same time without locks. The
modification time of an entry is the time of its last use.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from compass_core import switches
from compass_core.errors import CompassError

_LEFTOVER_AGE = 3600.0
"""Seconds after which an unfinished file belongs to a process that died."""


def key_of(*parts: str | bytes) -> str:
    """A key for contents given as parts: equal only when every part is equal."""
    import hashlib

    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def cache_root() -> Path:
    """Where the cache lies: `COMPASS_CACHE_DIR`, else `$XDG_CACHE_HOME/compass`, else `~/.cache/compass`."""
    named = switches.CACHE_DIR.get()
    if named is not None:
        return named.absolute()
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return (Path(home).expanduser() / "compass").absolute()


def _unlink(path: Path) -> None:
    """Remove a file that may be missing, or lie below a path that cannot be a folder."""
    try:
        path.unlink(missing_ok=True)
    except NotADirectoryError:
        return


@dataclass(frozen=True)
class Entry:
    """One file of the cache: its kind, its size in bytes and the time of its last use (seconds since the epoch)."""

    path: Path
    kind: str
    size: int
    used: float


class Cache:
    """The cache at `root` (default: the user's). The folder is created by the first `put`."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_root()

    def path(self, kind: str, key: str) -> Path:
        """Where the entry of `key` lies, present or not."""
        return self.root / kind / key[:2] / key

    def get(self, kind: str, key: str) -> Path | None:
        """The complete file stored under `key`, now marked as used; None when there is none."""
        path = self.path(kind, key)
        try:
            os.utime(path)
        except FileNotFoundError:
            return None
        except PermissionError:  # somebody else's read-only cache: usable, its age is not ours to change
            return path if path.exists() else None
        return path

    def put(self, kind: str, key: str, content: bytes | Callable[[Path], None]) -> Path:
        """Store bytes, or what a function writes to the path it gets; returns the entry. Atomic.

        When several processes put the same key, the last rename wins; the contents are the same by definition.
        """
        path = self.path(kind, key)
        partial = path.with_name(f".{key[:16]}.{os.getpid()}.{time.monotonic_ns()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                partial.write_bytes(content)
            else:
                content(partial)
            os.replace(partial, path)
        except OSError as error:
            raise CompassError(
                f"cannot write to the cache folder '{self.root}': {error.strerror or error}",
                code="cache-unwritable",
                help="name a writable folder with COMPASS_CACHE_DIR=DIR",
            ) from error
        finally:
            _unlink(partial)
        return path

    def entries(self) -> Iterator[Entry]:
        """All complete entries; files that vanish while being listed are left out."""
        for path, status in self._files():
            if not path.name.startswith("."):
                yield Entry(path, path.relative_to(self.root).parts[0], status.st_size, status.st_mtime)

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self.root.glob("*/??/*"):
            try:
                yield path, path.stat()
            except FileNotFoundError:
                continue

    def clear(self) -> int:
        """Remove all entries and unfinished files; returns how many bytes that freed."""
        return self._remove([(path, status.st_size) for path, status in self._files()])

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
    def _remove(files: list[tuple[Path, int]]) -> int:
        for path, _ in files:
            path.unlink(missing_ok=True)
        return sum(size for _, size in files)
