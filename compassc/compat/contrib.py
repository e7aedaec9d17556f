"""Helpers of the framework around files, under its names: a folder for the files of one run."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


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
