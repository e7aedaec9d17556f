"""The source places of the parts of a line of C, for statements of several lines.

The text of a call or access in another line than what it stands in is marked inside its first and its last character,
so that nothing which looks at the ends of a text sees a mark; the finished line is rid of them.
"""

from __future__ import annotations

import re

from compass_core.errors import Span

Part = tuple[int, Span]
"""The offset in a line from which on its text comes from a place."""

_MARK = re.compile("\x01(\\d+)([\x02\x03])")
_BEGIN, _END = "\x02", "\x03"


class Places:
    """The places of the marks in the texts of one function."""

    def __init__(self) -> None:
        self._spans: list[Span] = []

    def marked(self, text: str, span: Span, outer: Span | None) -> str:
        """The text of a node at `span`, marked where the node around it, at `outer`, is on another line."""
        if outer is None or (span.file, span.line) == (outer.file, outer.line) or len(text) < 2:
            return text
        number = len(self._spans)
        self._spans += [span, outer]
        return f"{text[0]}\x01{number}{_BEGIN}{text[1:-1]}\x01{number + 1}{_END}{text[-1]}"

    def parts(self, text: str) -> tuple[str, tuple[Part, ...]]:
        """A line without its marks, and its parts behind the first one."""
        found: dict[int, Span] = {}
        clean, end = "", 0
        for mark in _MARK.finditer(text):
            clean += text[end : mark.start()]
            end = mark.end()
            found[len(clean) + (1 if mark[2] == _END else -1)] = self._spans[int(mark[1])]
        clean += text[end:]
        return clean, tuple([(at, span) for at, span in sorted(found.items()) if at < len(clean)])
