"""The lines of source files that errors and profiles show.

A place may come from a file of somebody else, which can name any path. Of such a place only a file is shown that the
build of that file noted the hash of: who can note it knows the content. No read waits, or takes more than a bound.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import stat
import time
from collections.abc import Container
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from compass_core.bounded import Bounded
from compass_core.errors import Span
from compass_core.reading.limits import EXCERPT_BYTES

_COMPILER = "compassc"
_TICK = 20_000_000
"""Nanoseconds within which two changes of a file may have one time."""
_STATE = ("st_dev", "st_ino", "st_mode", "st_size", "st_mtime_ns", "st_ctime_ns")
"""What changes where a file's content does."""
_DIGESTS: Bounded[str, tuple[object, str]] = Bounded(1 << 10)
"""Digests of files, with what they were of: all kernels of layers name the same few files of the compiler."""


def portable_name(file: str) -> str:
    """What texts and objects call a source file: those of the compiler, which makes kernels of layers, as their package calls
    them, wherever it is installed (`compassc/layers/axes.py`); others as they are."""
    folder = _installed()
    return file[len(folder) :] if folder and file.startswith(f"{folder}{_COMPILER}/") else file


def path_of(name: str) -> str:
    """The file of a portable name."""
    own = _installed() + name if name.startswith(f"{_COMPILER}/") else name
    return own if os.path.exists(own) else name


@lru_cache(maxsize=1)
def _installed() -> str:
    """The folder that the compiler's package lies in, with a slash at its end; nothing where there is only the runtime."""
    spec = find_spec(_COMPILER)
    return f"{Path(spec.origin).parents[1]}/" if spec is not None and spec.origin else ""


def source_line(span: Span, number: int) -> str:
    """A line of a span's file, without its end; empty when there is none, or it may not be shown."""
    if span.built is None:
        linecache.checkcache(span.file)
        if span.file in linecache.cache:  # also text that lies in no file
            return linecache.getline(span.file, number).rstrip("\n")
    lines = source_lines(span.file, span.built)
    return lines[number - 1] if 0 < number <= len(lines) else ""


def source_lines(file: str, built: Container[str] | None) -> list[str]:
    """The lines of a file whose SHA-256 is one of `built` (None: of any file); none when it is not such a file."""
    data = _regular(file)
    if data is None or (built is not None and digest(data) not in built):
        return []
    return data.decode("utf-8", "replace").splitlines()


def digest(data: bytes) -> str:
    """The digest of a file's content, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def file_digest(file: str) -> str | None:
    """The digest of a source file as it is now; None when it is none whose lines are ever shown."""
    path = path_of(file)
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    state = (*(getattr(status, what) for what in _STATE), EXCERPT_BYTES.most)
    before, found = _DIGESTS.get(path, (None, None))
    if before != state:
        settled = time.time_ns() - status.st_ctime_ns >= _TICK
        data = _regular(path)
        found = None if data is None else digest(data)
        if settled and found is not None:
            _DIGESTS[path] = state, found
    return found


def _regular(file: str) -> bytes | None:
    """The content of a regular file that is not too large; None for anything else, without waiting for it."""
    try:
        handle = os.open(path_of(file), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    with open(handle, "rb") as opened:
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_size > EXCERPT_BYTES.most:
                return None
            return opened.read(EXCERPT_BYTES.most + 1)[: EXCERPT_BYTES.most]
        except OSError:
            return None
