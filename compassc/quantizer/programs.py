"""Data sets and functions in users' Python files: what they raise is told with their file and line."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from compass_core.errors import CompassError, Span
from compass_core.errors.suggest import help_for


@contextmanager
def blamed(path: Path, what: str, code: str, help: str = "") -> Iterator[None]:
    """What is raised inside becomes a CompassError at the line of the file that it came from."""
    try:
        yield
    except CompassError:
        raise
    except Exception as error:
        names = {str(path), str(path.absolute())}
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename in names]
        own = error.lineno if isinstance(error, SyntaxError) and error.filename in names else None
        raise CompassError(
            f"{what}: {type(error).__name__}: {error}",
            Span(str(path), own or (lines[-1] if lines else None) or 1),
            code=code,
            help=help,
        ) from error


class OfProgram(Sequence[object]):
    """A sequence of samples of a user's file."""

    def __init__(self, samples: Sequence[object], path: Path, name: str) -> None:
        self._samples, self._path, self._name = samples, path, name

    def __len__(self) -> int:
        with self._blamed():
            return len(self._samples)

    def __getitem__(self, index: Any) -> Any:
        with self._blamed():
            return self._samples[index]

    def __iter__(self) -> Iterator[object]:
        return (self[i] for i in range(len(self)))

    def _blamed(self) -> AbstractContextManager[None]:
        return blamed(self._path, f"the data set '{self._name}' fails", code="calibration-data")


def program_of(path: Path, name: str) -> object:
    """The data set that a Python file defines: a class or function without arguments, or samples, in a sequence or one
    after the other."""
    import runpy

    code = "calibration-data"
    if not path.is_file():
        raise CompassError(f"'{path}' does not exist", code="unreadable")
    with blamed(path, f"the data set '{name}' fails", code):
        names = runpy.run_path(str(path))
    if name not in names:
        help = help_for(name, [n for n in names if not n.startswith("_")], "names")
        raise CompassError(f"'{path}' has no '{name}'", code=code, help=help)
    with blamed(path, f"the data set '{name}' fails", code):
        found = names[name]() if callable(names[name]) else names[name]
        if isinstance(found, (np.ndarray, Mapping)):
            return found
        if isinstance(found, Iterable) and not (hasattr(found, "__getitem__") and hasattr(found, "__len__")):
            found = list(found)
    return OfProgram(found, path, name) if hasattr(found, "__getitem__") and hasattr(found, "__len__") else found
