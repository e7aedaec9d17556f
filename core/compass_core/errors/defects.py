"""Defects of the toolchain itself: the message to the user, and the folder with all files to reproduce one."""

from __future__ import annotations

import errno
import os
import platform
import shlex
import shutil
import tempfile
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path

from compass_core import VERSION
from compass_core.errors import CompassError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EBADF)
_LARGEST = 64 << 20
"""Bytes of the largest input file that is copied, and of all stage files."""
_MOST_FILES = 200


class InternalError(CompassError):
    """Something failed that is not the user's fault. Its cause is the original exception."""

    exit_code = 70


def defect(
    error: Exception, command: Sequence[str], inputs: Iterable[Path] = (), stages: Path | None = None
) -> CompassError:
    """The report of an unforeseen exception. `command` is what was run, `stages` the folder of stage files so far.

    What the system refuses about a file is no defect.

    A pass that failed says so by its name and the module it was given (`pass_name`, `before`): that alone shows the
    defect again.
    """
    if isinstance(error, OSError) and (error.filename or error.errno in _FULL):
        what = f"'{error.filename}' cannot be used" if error.filename else "a file cannot be written"
        return CompassError(f"{what}: {error.strerror}", code="file-access")
    if _current_folder() is None:
        return CompassError("the current folder does not exist any more", code="file-access", help="cd to another one")
    again = shlex.join(command)
    message = f"internal error: {type(error).__name__}: {error}".partition("\n")[0]
    if module := getattr(error, "before", ""):
        message = str(error).partition("\n")[0]
    try:
        folder = _saved(error, command, inputs, stages)
        if module:
            path = folder / "before.ir.txt"
            path.write_text(module, encoding="utf-8")
            again = shlex.join(["compassc", "lower", str(path), "--passes", getattr(error, "pass_name", ""), "-o", "-"])
        kept, what = f"what is needed to see it again is in {folder}", "it with that folder"
    except OSError as why:
        what = "it"
        kept = f"what is needed to see it again could not be kept: {why}"
    found = InternalError(
        message,
        notes=(
            f"this is a defect of {command[0]}, not of your kernel",
            kept,
        ),
        code="internal",
        help=f"report {what}; it happens again with `{again}`",
    )
    found.__cause__ = error
    return found


def _current_folder() -> Path | None:
    """None when it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _copy_some(stages: Path, folder: Path) -> None:
    """The files of a folder, which may be one that has all of a user's files: not too many, and not what links lead to."""
    room, files = _LARGEST, 0
    for place, inner, names in os.walk(stages):
        for name in sorted(names):
            path = Path(place, name)
            if path.is_symlink() or not path.is_file() or path.stat().st_size > room:
                continue
            copy = folder / path.relative_to(stages)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
            room, files = room - path.stat().st_size, files + 1
            if files == _MOST_FILES:
                return
        inner.sort()


def _saved(error: Exception, command: Sequence[str], inputs: Iterable[Path], stages: Path | None) -> Path:
    """A new folder with the inputs, the stage files, the traceback and the versions."""
    folder = Path(tempfile.mkdtemp(prefix="compassc-report-"))
    for path in inputs:
        if path.is_file() and path.stat().st_size <= _LARGEST:
            shutil.copy(path, folder)
    if stages is not None and stages.is_dir():
        _copy_some(stages, folder / "stages")
    (folder / "traceback.txt").write_text("".join(traceback.format_exception(error)), "utf-8", "replace")
    about = {
        "command": shlex.join(command),
        "working directory": str(Path.cwd()),
        "version": VERSION,
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    lines = [f"{name}: {value}\n" for name, value in about.items()]
    (folder / "versions.txt").write_text("".join(lines), "utf-8", "replace")
    return folder
