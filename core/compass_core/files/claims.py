"""What a command reads and what it writes: an output is neither an input nor another output.

A command's types of arguments say which files it reads and writes (`reads`, `writes`), and so do readers that follow names in
files. What is written without being named is held against that, too, when it is written (`refuse_input`). Outside of a
command nothing is claimed, and nothing refused: a program knows what it does.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from compass_core.dataclass import dataclass
from compass_core.errors import UsageError

CODE = "output-is-input"
_HELP = "give the output a name of its own"
Key = tuple[int, int] | str
"""A file whatever it is called: device and inode; the path without links of one that is not there."""


@dataclass
class _Claims:
    inputs: set[Key] = field(default_factory=set)
    outputs: dict[Key, str] = field(default_factory=dict)
    """What names them."""
    written: set[str] = field(default_factory=set)
    """What was written so far: read again it is no input."""


_claims: _Claims | None = None
"""Of the command that this process runs."""


@contextmanager
def command() -> Iterator[None]:
    """A command, from its arguments to its end."""
    global _claims
    before, _claims = _claims, _Claims()
    try:
        yield
    finally:
        _claims = before


def reads(path: Path) -> None:
    """The command reads a file. UsageError when it is an output."""
    if _claims is not None and (key := _key(path)) is not None and os.path.realpath(path) not in _claims.written:
        _claims.inputs.add(key)
        if key in _claims.outputs:
            raise _refusal(f"{_claims.outputs[key]} is '{path}', which the command reads")


def writes(path: Path, label: str) -> None:
    """The command writes a file, which `label` names (`-o`). UsageError when it is an input or another output."""
    if _claims is None or (key := _key(path)) is None:
        return
    if key in _claims.inputs:
        raise _refusal(f"{label} is '{path}', which the command reads")
    if (other := _claims.outputs.setdefault(key, label)) != label:
        raise _refusal(f"both {other} and {label} are '{path}'")


def changes(path: Path) -> None:
    """The command puts something else in the place of what it read."""
    if _claims is not None and (key := _key(path)) is not None:
        _claims.inputs.discard(key)


def refuse_input(path: Path) -> None:
    """UsageError where the file that is about to be written is an input."""
    if _claims is None:
        return
    _claims.written.add(os.path.realpath(path))
    if _claims.inputs and _key(path) in _claims.inputs:
        raise _refusal(f"'{path}' would be overwritten, which the command reads")


def _refusal(message: str) -> UsageError:
    return UsageError(message, code=CODE, help=_HELP)


def _key(path: Path) -> Key | None:
    """None for what is no file: a folder, a device, a pipe, stdin or stdout."""
    if str(path) == "-":
        return None
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
