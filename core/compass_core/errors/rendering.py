"""Errors as plain text, coloured text, or JSON lines.

JSON, for editors and CI: one object per diagnostic and line, with the keys

| key | value |
|---|---|
| `severity` | `error` or `warning` |
| `code` | the stable name of the rule, as `compassc explain` takes it; may be empty |
| `message`, `help` | text; `help` may be empty |
| `file` | a path, or null |
| `line`, `column`, `end_line`, `end_column` | numbers from 1, the end exclusive; 0 where unknown |
| `notes` | a list of objects with `message` and the five keys of a place |
"""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import TextIO

from compass_core import switches
from compass_core.errors import CompassError, ErrorGroup, Note, Span, UsageError, flat
from compass_core.errors.excerpts import source_line

FORMATS = ("text", "json")
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MOST_LINES = 4
_MOST_COLUMNS = 200
"""Of an excerpt: lines of files that are no text for people may have millions."""
_STYLES = {"error": "31", "warning": "35", "note": "36", "help": "32"}
_BOLD, _GREEN, _RESET = "\x1b[1m", "\x1b[1;32m", "\x1b[0m"
_LABEL = re.compile(r"^(?P<place>.*?)(?P<label>error|warning|note|help): (?P<text>.*)$")


# ---------------------------------------------------------------------------------------------------------------- text


def text(error: CompassError) -> str:
    """An error in clang's layout; a group ends with the number of its errors and warnings."""
    found = flat(error)
    parts = [visible(_one(e)) for e in found]
    if isinstance(error, ErrorGroup):
        parts.append(f"{counted(found)} generated.")
    return "\n".join(parts)


def visible(text: str) -> str:
    """Text from files and kernels as a terminal may show it: control characters and changes of direction are escaped."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def for_stream(text: str, stream: TextIO) -> str:
    """Text that a kernel printed, for a stream: unchanged, but escaped for a terminal."""
    return visible(text) if stream.isatty() else text


def counted(found: Sequence[CompassError]) -> str:
    """`2 errors and 1 warning`."""
    counts = [(kind, sum(e.severity == kind for e in found)) for kind in ("error", "warning")]
    return " and ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts if n)


def _one(error: CompassError) -> str:
    code = f" [{error.code}]" if error.code else ""
    where = f"{error.span}: " if error.span else ""
    lines = [f"{where}{error.severity}: {error.message}{code}", *excerpt(error.span)]
    for note in error.notes:
        lines.append(f"{note.span}: note: {note.message}" if note.span else f"  note: {note.message}")
        lines += excerpt(note.span)
    if error.help:
        lines.append(f"  help: {error.help}")
    return "\n".join(lines)


def excerpt(span: Span | None) -> list[str]:
    """The source lines of a span with carets under its range; nothing when the file cannot be read.

    Of a long span the first lines and the last one are shown.
    """
    if span is None:
        return []
    last = max(span.line, span.end_line) if span.col else span.line
    numbers = list(range(span.line, last + 1))
    if len(numbers) > _MOST_LINES:
        numbers = [*numbers[: _MOST_LINES - 2], 0, last]
    lines: list[str] = []
    for number in numbers:
        if number == 0:
            lines.append("  ...")
        elif source := source_line(span, number):
            shown, place = _part(source, number, span, last)
            lines.append(f"  {shown}")
            lines.append("  " + _carets(shown, number, place, last))
    return lines


def _part(source: str, number: int, span: Span, last: int) -> tuple[str, Span]:
    """A source line with the span in it; of a line that is too long the part where the span begins."""
    if len(source) <= _MOST_COLUMNS:
        return source, span
    begins = number == span.line and span.col > 0
    first = max(0, min(span.col - 1 if begins else 0, len(source)) - _MOST_COLUMNS // 4)
    cut = source[first : first + _MOST_COLUMNS]
    before, after = ("..." if first else ""), ("..." if first + len(cut) < len(source) else "")
    moved, shown = first - len(before), f"{before}{cut}{after}"
    if begins:
        span = replace(span, col=span.col - moved)
    if span.col and number == last and span.end_col:
        span = replace(span, end_col=min(max(span.end_col - moved, 1), len(before) + len(cut) + 1))
    return shown, span


def _carets(source: str, number: int, span: Span, last: int) -> str:
    """The line of carets under a source line; tabs are kept and wide characters count as two."""
    first = len(source) - len(source.lstrip())
    start = span.col - 1 if number == span.line and span.col else first
    if not span.col:
        span = replace(span, col=first + 1, end_line=last, end_col=len(source.rstrip()) + 1)
    stop = span.end_col - 1 if number == last and span.end_col > start + 1 else len(source.rstrip())
    if number == last and span.end_col <= start + 1:
        stop = start + 1 if span.end_col else len(source)
    pad = "".join(c if c == "\t" else " " * _width(c) for c in source[:start])
    width = max(1, sum(map(_width, source[start:stop])))
    return pad + ("^" if number == span.line else "~") + "~" * (width - 1)


def _width(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


# -------------------------------------------------------------------------------------------------------------- colour


def colored(plain: str) -> str:
    """A rendered error with its labels, places and carets in colour."""
    return "\n".join(_colored_line(line) for line in plain.splitlines())


def _colored_line(line: str) -> str:
    if match := _LABEL.match(line):
        label = f"\x1b[1;{_STYLES[match['label']]}m{match['label']}:{_RESET}"
        return f"{_BOLD}{match['place']}{_RESET}{label} {match['text']}"
    return f"{_GREEN}{line}{_RESET}" if line.strip(" \t").strip("^~") == "" else line


def wants_color(choice: str) -> bool:
    """Whether stderr gets colours: `always`, `never`, or `auto`, which is a terminal without NO_COLOR."""
    if choice == "auto":
        return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return choice == "always"


def shown(error: CompassError, format: str = "text", color: bool = False) -> str:
    """An error the way the user asked for."""
    if format == "json":
        return json_lines(error)
    return colored(text(error)) if color else text(error)


# ---------------------------------------------------------------------------------------------------------------- JSON


def color_asked(given: str | None = None) -> bool:
    """Whether errors are coloured: as an option of a command says, or else COMPASS_COLOR."""
    try:
        return wants_color(switches.COLOR.get(given))
    except UsageError:  # a malformed switch is about to be reported: do so in plain text
        return False


def format_asked(given: str | None = None) -> str:
    """How errors are written, `text` or `json`: as an option of a command says, or else COMPASS_ERROR_FORMAT."""
    try:
        return switches.ERROR_FORMAT.get(given)
    except UsageError:
        return "text"


def traceback_asked(given: bool | None = None) -> bool:
    """Whether errors come with the Python traceback: as an option of a command says, or else COMPASS_TRACEBACK."""
    if given is not None:
        return given
    try:
        return switches.TRACEBACK.get()
    except UsageError:
        return False


def as_asked(error: CompassError, color: str | None = None, format: str | None = None) -> str:
    """An error as it is shown on stderr: as options of a command say, or else the switches."""
    return shown(error, format_asked(format), color_asked(color))


def json_lines(error: CompassError) -> str:
    """One JSON object per diagnostic and line."""
    return "\n".join(json.dumps(as_dict(e), ensure_ascii=False) for e in flat(error))


def as_dict(error: CompassError) -> dict[str, object]:
    """A diagnostic with the keys this module's docstring lists."""
    return {
        "severity": error.severity,
        "code": error.code,
        "message": error.message,
        **_place(error.span),
        "help": error.help,
        "notes": [_note(note) for note in error.notes],
    }


def _note(note: Note) -> dict[str, object]:
    return {"message": note.message, **_place(note.span)}


def _place(span: Span | None) -> dict[str, object]:
    if span is None:
        return {"file": None, "line": 0, "column": 0, "end_line": 0, "end_column": 0}
    return {
        "file": span.file,
        "line": span.line,
        "column": span.col,
        "end_line": span.end_line,
        "end_column": span.end_col,
    }
