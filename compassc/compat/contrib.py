"""Helpers of the framework around files and clang, under its names."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from compass_core import files
from compass_core.errors import UsageError
from compass_core.hostcc.clang import find_clang

T = TypeVar("T")


class TempDirectory:
    """A folder that goes when nothing refers to it any more, or with `remove`. `custom_path`: one that stays."""

    def __init__(self, custom_path: str | os.PathLike[str] | None = None) -> None:
        self._made = None if custom_path is not None else tempfile.TemporaryDirectory(prefix="compassc-")
        self.temp_dir = str(custom_path) if custom_path is not None else self._made.name if self._made else ""
        Path(self.temp_dir).mkdir(parents=True, exist_ok=True)

    @property
    def path(self) -> str:
        """The folder."""
        return self.temp_dir

    def relpath(self, name: str) -> str:
        """The path of a file in it."""
        return str(Path(self.temp_dir, name))

    def listdir(self) -> list[str]:
        """The names of the files in it."""
        return sorted(os.listdir(self.temp_dir))

    def remove(self) -> None:
        """Remove it now."""
        if self._made is not None:
            self._made.cleanup()


def tempdir(custom_path: str | os.PathLike[str] | None = None) -> TempDirectory:
    """A folder for files of this run."""
    return TempDirectory(custom_path)


def create_llvm(
    inputs: str | Sequence[str], output: str | None = None, options: Sequence[str] | None = None, cc: str | None = None
) -> str:
    """The text of LLVM of a text of C++ (or of a file of C or C++), by the project's clang; what the pragma `import_llvm`
    takes. `output`: a file that gets it, too; `options`: further ones of clang. CompassError for several inputs, and where
    clang refuses."""
    import subprocess

    if cc is not None:
        raise UsageError("the argument 'cc' is not supported", code="compat-name", help="the project's clang is called")
    listed = [inputs] if isinstance(inputs, str) else list(inputs)
    if len(listed) != 1:
        raise UsageError(
            f"create_llvm takes one text, got {len(listed)}", code="input", help="join them, or call it for each"
        )
    is_text = any(c in listed[0] for c in "{;\n")
    source = ["-x", "c++", "-"] if is_text else [listed[0]]
    command = [str(find_clang().path), "-O3", "-fPIC", "-emit-llvm", "-S", *(options or ()), *source, "-o", "-"]
    done = subprocess.run(command, input=listed[0] if is_text else "", capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError("clang refuses the text", code="input", notes=tuple(done.stderr.splitlines()[:20]))
    if output is not None:
        files.write(Path(output), done.stdout)
    return done.stdout


def memoize(key: str, save_at_exit: bool = False) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """A decorator: the results of a function without side effects are kept by its arguments, for this process."""
    import functools
    import pickle

    def decorated(function: Callable[..., T]) -> Callable[..., T]:
        known: dict[bytes, T] = {}

        @functools.wraps(function)
        def kept(*args: object) -> T:
            named = pickle.dumps((key, args))
            if named not in known:
                known[named] = function(*args)
            return known[named]

        return kept

    return decorated
