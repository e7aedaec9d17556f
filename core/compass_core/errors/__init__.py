"""The one error family of the toolchain. `compass_core.errors.rendering` turns it into text or JSON.

Every error carries what is wrong, where (a `Span` of the user's file), why (notes) and what to do (help). Exit codes:
0 ok, 1 the user's kernel or data, 2 usage, 3 toolchain missing, 70 internal error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from compass_core.dataclass import dataclass


@dataclass(frozen=True)
class Span:
    """A range of a source file. Lines and columns count from 1; `end_col` is exclusive; 0 means unknown.

    `built`: for a place that a file names which may be anybody's, the hashes of the sources whose lines may be shown for it
    (`compass_core.errors.excerpts`); None: the user named the file.
    """

    file: str
    line: int
    col: int = 0
    end_line: int = 0
    end_col: int = 0
    built: frozenset[str] | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}" if self.col else f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Note:
    """A secondary message of a diagnostic: why, or one step of the chain of calls that led to the error."""

    message: str
    span: Span | None = None


class CompassError(RuntimeError):
    """Something is wrong in what the user gave: a kernel, a file, an argument.

    It is a RuntimeError for the sake of programs written for the vendor's packages, whose builds fail with one; classes
    below are the built-in errors too that those packages raise at their places. `message` says what, `span` where, `notes` why, `help` what to do. `code` is a stable name of the rule.
    """

    exit_code = 1
    severity = "error"

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        *,
        code: str = "",
        notes: tuple[Note | str, ...] = (),
        help: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.code = code
        self.notes = tuple(Note(n) if isinstance(n, str) else n for n in notes)
        self.help = help

    def __str__(self) -> str:
        return f"{self.span}: {self.message}" if self.span else self.message

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        """What Python (3.11 and newer) and notebooks show below the text of an error that is not caught: its source line,
        notes and help."""
        return [rest] if (rest := render(self).partition("\n")[2]) else []


class UsageError(CompassError):
    """The command line or an API call is malformed."""

    exit_code = 2


class ToolchainError(CompassError):
    """A program the toolchain needs (clang, the simulator engine) is missing or does not work."""

    exit_code = 3


class ArgumentError(CompassError, AssertionError):
    """A kernel, or a function of the Python API, is called with invalid arguments."""


class Finding(CompassError):
    """Something that is suspicious, but does not stop a build: `compassc check` reports it as a warning."""

    severity = "warning"


class ErrorGroup(CompassError):
    """Several independent errors found in one run; groups in it are dissolved."""

    def __init__(self, errors: Sequence[CompassError]) -> None:
        self.errors = [one for error in errors for one in flat(error)]
        super().__init__(f"{len(self.errors)} errors", errors[0].span)

    def __str__(self) -> str:
        """All of them in full: who catches a group and prints it has nothing else."""
        return f"{self.message}\n{render(self)}"

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        return []


def flat(error: CompassError) -> Sequence[CompassError]:
    """The single diagnostics of an error."""
    return error.errors if isinstance(error, ErrorGroup) else (error,)


def together(errors: Sequence[CompassError]) -> CompassError:
    """The one error to raise for the errors found (at least one)."""
    return errors[0] if len(errors) == 1 else ErrorGroup(errors)


def render(error: CompassError) -> str:
    """Plain text of an error: `file:line:col: error: what`, the source line and caret, `note:` and `help:` lines."""
    from compass_core.errors.rendering import text

    return text(error)
