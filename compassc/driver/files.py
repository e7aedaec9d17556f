"""Small file operations that all stages share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_WIDTH = 120


def json_text(value: Any, indent: str = "", taken: int = 0) -> str:
    """Readable JSON: values that fit are written on one line, others on several.

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


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()
