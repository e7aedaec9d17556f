"""Small file operations that all stages share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from compass_core.errors import CompassError

_WIDTH = 120


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


def json_text(value: Any, indent: str = "", taken: int = 0) -> str:
    """JSON for people: what fits on a line stands on one, the rest is broken up.

    `taken`: characters that stand between the indent and the value.
    """
    import json

    flat = json.dumps(value)
    if len(indent) + taken + len(flat) < _WIDTH or not isinstance(value, (list, dict)):
        return flat
    inner = indent + " "
    if isinstance(value, dict):
        lines = [f"{json.dumps(k)}: {json_text(v, inner, len(k) + 4)}" for k, v in value.items()]
        return "{\n" + inner + f",\n{inner}".join(lines) + f"\n{indent}}}"
    lines, simple = [], False
    for item in value:  # numbers and words share a line
        text = json_text(item, inner)
        if simple and not isinstance(item, (list, dict)) and len(inner) + len(lines[-1]) + len(text) + 3 < _WIDTH:
            lines[-1] += f", {text}"
        else:
            lines.append(text)
        simple = not isinstance(item, (list, dict))
    return "[\n" + inner + f",\n{inner}".join(lines) + f"\n{indent}]"


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
