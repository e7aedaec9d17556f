"""clang's messages as errors of the one family, at the line of kernel.py that the C came from."""

from __future__ import annotations

import re
from dataclasses import field
from pathlib import Path

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Note, Span, ToolchainError, together
from compass_core.hostcc import command, whole_vectors

_MESSAGE = re.compile(
    r"(?P<file>[^:\n]+):(?P<line>\d+):(?P<col>\d+): (?P<kind>fatal error|error|warning|note): (?P<text>.*)"
)
_EXCERPT = re.compile(r" *\d+ \| (?P<text>.*)")
MAX_ERRORS = 20


@dataclass
class _Message:
    kind: str
    text: str
    span: Span
    excerpt: str = ""
    notes: list[_Message] = field(default_factory=list)


def compile_error(output: str, folder: Path, headers: Path, built: frozenset[str]) -> CompassError:
    """The error of a failed compilation in `folder`, without clang's messages about our `headers`.

    `built`: the hashes of the files whose lines may be shown; a text can name others.
    """
    messages = [message for message in _messages(output, folder, built) if message.kind.endswith("error")]
    if not messages:
        tail = output.strip().splitlines()[-8:]
        return command.changed_headers() or ToolchainError(
            "clang failed without naming a line", code="clang-failed", notes=tuple(tail)
        )
    errors = [_error(message, headers) for message in messages[:MAX_ERRORS]]
    return together(errors)


def _messages(output: str, folder: Path, built: frozenset[str]) -> list[_Message]:
    """The messages in clang's output; notes hang on the message they belong to."""
    found: list[_Message] = []
    latest: _Message | None = None
    for line in output.splitlines():
        if match := _MESSAGE.fullmatch(line):
            span = Span(_as_seen_here(match["file"], folder), int(match["line"]), built=built)
            latest = _Message(match["kind"], match["text"], span)
            if match["kind"] == "note" and found:
                found[-1].notes.append(latest)
            else:
                found.append(latest)
        elif latest is not None and not latest.excerpt and (excerpt := _EXCERPT.fullmatch(line)):
            latest.excerpt = whole_vectors.readable(excerpt["text"].strip())
    return found


def _as_seen_here(file: str, folder: Path) -> str:
    """A file name of clang's, made to lead somewhere from the current folder."""
    there = folder / file
    if Path(file).is_file() or not there.is_file():
        return file
    return str(there.relative_to(Path.cwd()) if there.is_relative_to(Path.cwd()) else there)


def _error(message: _Message, headers: Path) -> CompassError:
    notes = [Note(f"in the generated C: {message.excerpt}")] if message.excerpt else []
    notes += [Note(note.text, note.span) for note in message.notes if not Path(note.span.file).is_relative_to(headers)]
    return CompassError(f"C compiler: {message.text}", message.span, code="clang", notes=tuple(notes))
