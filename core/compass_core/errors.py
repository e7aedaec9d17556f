"""The one error family of the toolchain, and its clang-like plain text form.

Every error carries what is wrong, where (a `Span` of the user's file), why (notes) and what to do (help). Exit codes:
0 ok, 1 the user's kernel or data, 2 usage, 3 toolchain missing, 70 internal error.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A range of a source file. Lines and columns count from 1; `end_col` is exclusive; 0 means unknown."""

    file: str
    line: int
    col: int = 0
    end_line: int = 0
    end_col: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}" if self.col else f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Note:
    """A secondary message of a diagnostic: why, or one step of the chain of calls that led to the error."""

    message: str
    span: Span | None = None


class CompassError(Exception):
    """Something is wrong in what the user gave: a kernel, a file, an argument.

    `message` says what, `span` where, `notes` why, `help` what to do. `code` is a stable name of the rule.
    """

    exit_code = 1

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


class UsageError(CompassError):
    """The command line or an API call is malformed."""

    exit_code = 2


class ToolchainError(CompassError):
    """A program the toolchain needs (clang, the simulator engine) is missing or does not work."""

    exit_code = 3


class ErrorGroup(CompassError):
    """Several independent errors found in one run."""

    def __init__(self, errors: list[CompassError]) -> None:
        super().__init__(f"{len(errors)} errors", errors[0].span)
        self.errors = errors


def _excerpt(span: Span) -> list[str]:
    """The source line of `span` with a caret range under it; nothing when the file cannot be read."""
    linecache.checkcache(span.file)
    text = linecache.getline(span.file, span.line).rstrip("\n")
    if not text:
        return []
    lines = [f"  {text}"]
    if span.col:
        same_line = span.end_line in (0, span.line) and span.end_col > span.col
        width = span.end_col - span.col if same_line else max(1, len(text) - span.col + 1)
        pad = "".join(c if c == "\t" else " " for c in text[: span.col - 1])
        lines.append("  " + pad + "^" + "~" * (width - 1))
    return lines


def render(error: CompassError) -> str:
    """Plain text of an error: `file:line:col: error: what`, the source line and caret, `note:` and `help:` lines."""
    if isinstance(error, ErrorGroup):
        return "\n".join([*(render(e) for e in error.errors), f"{len(error.errors)} errors generated."])
    code = f" [{error.code}]" if error.code else ""
    where = f"{error.span}: " if error.span else ""
    lines = [f"{where}error: {error.message}{code}"]
    if error.span:
        lines += _excerpt(error.span)
    for note in error.notes:
        lines.append(f"{note.span}: note: {note.message}" if note.span else f"  note: {note.message}")
        if note.span:
            lines += _excerpt(note.span)
    if error.help:
        lines.append(f"  help: {error.help}")
    return "\n".join(lines)
