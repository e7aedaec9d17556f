"""Small file operations that all stages share."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compass_core import files
from compass_core.errors import CompassError

_WIDTH = 120


def read_graph(text: str, constants: bytes, path: str) -> Any:
    """A graph in the text of a module, whose package is loaded for it."""
    from compassc.graph import read

    return read(text, constants, path)


def json_text(value: object, indent: str = "", taken: int = 0) -> str:
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


@contextmanager
def stage_files(folder: Path, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """The folder of a build's stage files, locked; `waiting` is called when another build has it.

    A build that fails leaves no folder that it made itself. What was there before stays, and so do the files of a build that
    ends by a defect of the toolchain, which its report names.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    with files.locked(folder, waiting):
        made = folder in missing and not any(folder.iterdir())  # else another build has made it meanwhile
        try:
            yield
        except CompassError:
            if made:
                shutil.rmtree(folder, ignore_errors=True)
                _remove_empty(missing[1:])
            raise


def _remove_empty(folders: list[Path]) -> None:
    """Remove folders, innermost first, up to one that holds something."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return
