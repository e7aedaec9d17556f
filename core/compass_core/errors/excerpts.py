"""The lines of source files that errors and profiles show.

A place may come from a file of somebody else, which can name any path. Of such a place only a file is shown that the
build of that file noted the hash of: who can note it knows the content. No read waits, or takes more than a bound.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import stat
from collections.abc import Container

from compass_core.errors import Span
from compass_core.reading.limits import EXCERPT_BYTES


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
    data = _regular(file)
    return None if data is None else digest(data)


def _regular(file: str) -> bytes | None:
    """The content of a regular file that is not too large; None for anything else, without waiting for it."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
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
