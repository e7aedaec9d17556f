"""Small file operations that all stages share."""

from __future__ import annotations

import os
from pathlib import Path

from compass_core.errors import CompassError


def write_text(path: Path, text: str) -> Path:
    """Write a text file so that nobody ever sees a part of it; returns its path."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise CompassError(f"cannot write '{path}': {error.strerror}", code="unwritable") from None
    finally:
        partial.unlink(missing_ok=True)
    return path


def read_text(path: Path) -> str:
    """The content of a text file; CompassError when it cannot be read as one."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CompassError(f"cannot read '{path}': {error.strerror}", code="unreadable") from None
    except UnicodeDecodeError:
        raise CompassError(f"'{path}' is not a text file", code="unreadable") from None


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()
