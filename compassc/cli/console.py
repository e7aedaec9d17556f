"""Output of the commands: artifacts go to stdout, messages to stderr."""

from __future__ import annotations

import sys
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core import progress
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.errors.boundary import complain
from compass_core.errors.rendering import as_asked, for_stream, format_asked, traceback_asked, visible

if TYPE_CHECKING:
    from compassc.driver import StageRecord


@dataclass
class Console:
    """Messages of one command on stderr. `color`, `traceback` and `error_format` are None unless given as flags.

    A report of an internal error contains `inputs` and the files of `folder`.
    """

    verbose: bool = False
    color: str | None = None
    traceback: bool | None = None
    error_format: str | None = None
    inputs: list[Path] = field(default_factory=list)
    folder: Path | None = None
    _progress_shown: bool = False

    def format(self) -> str:
        """How errors are written: `text` or `json`."""
        return format_asked(self.error_format)

    def diagnose(self, error: CompassError) -> None:
        """Write an error, a warning or a group of them."""
        self._write(as_asked(error, self.color, self.error_format))

    def use_traceback(self) -> bool:
        """Whether errors come with the Python traceback."""
        return traceback_asked(self.traceback)

    def say(self, text: str) -> None:
        """A line."""
        self._write(for_stream(text, sys.stderr))

    def _write(self, text: str) -> None:
        self.clear_progress()
        complain(text)

    def detail(self, text: str) -> None:
        """Print a line if -v was given."""
        if self.verbose and text:
            self.say(text)

    def made(self, path: Path) -> None:
        """Name the file that was made."""
        self.say(shown(path))

    def stage(self, name: str, record: StageRecord | None) -> None:
        """Progress of a build: one line that is overwritten on a terminal; with -v a line per finished stage."""
        if record is not None:
            self.clear_progress()
            self.detail(f"{name:<8}{record.seconds * 1e3:9.1f} ms  {shown(record.outputs[0])}")
            for what, how in record.tuned.items():
                self.detail(f"  {what}: as on record, {how}")
        elif sys.stderr.isatty() and not self.verbose:
            self.progress(f"{name} ...")

    def progress(self, text: str) -> None:
        """Write the line that the next one overwrites, on a terminal."""
        complain(f"\r{text}\x1b[K", end="")
        self._progress_shown = True

    def waiting(self, folder: Path) -> None:
        """Print that another build holds the folder."""
        self.say(f"waiting for another build that uses {shown(folder)} ...")

    def clear_progress(self) -> None:
        """Clear the progress line."""
        progress.clear()
        if self._progress_shown:
            complain("\r\x1b[K", end="")
            self._progress_shown = False


def shown(path: Path) -> str:
    """A path as a user would type it here: relative when it lies below the current folder."""
    absolute = path.absolute()
    return str(absolute.relative_to(Path.cwd())) if absolute.is_relative_to(Path.cwd()) else str(path)


def artifact(content: str | bytes) -> None:
    """Write an artifact to stdout; what would be commands to a terminal is shown there as text."""
    if sys.stdout.isatty():
        content = visible(content if isinstance(content, str) else content.decode(errors="replace"))
    data = content.encode(errors="surrogateescape") if isinstance(content, str) else content
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
