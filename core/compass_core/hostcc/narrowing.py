"""Numbers of 32 bits that a kernel's C text narrows to 8, on hosts that narrow and join vectors in one instruction.

The dialect narrows each of four vectors in its place and then picks the even bytes of two, and of two again. Of such an
expression, where all lanes are narrowed with saturation, code for the host calls functions of other names
(compass/convert.h), which only shift before they join: clang does not find these instructions by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_JOIN = "__vexte("
_NARROW = re.compile(r"__v(?=nsrasr?_([su])\()")
_NEST = re.compile(r"__vexte\((?=__vexte\(__vnsrasr?_[su]\()")
_ALL_LANES = "__vmov_w(286331153)"
"""The mask of all lanes of 32 bits."""
_BRACKET_OR_COMMA = re.compile(r"[()]|,\s*")


def joined(text: str) -> str:
    """The text of one kernel file with such expressions computed by the host's functions. Every character stays where it is."""
    parts, at = [], 0
    for place in sorted(place for nest in _NEST.finditer(text) for place in _called(text, nest.start())):
        parts += [text[at:place], "__w"]
        at = place + len("__w")
    return "".join([*parts, text[at:]])


def _called(text: str, start: int) -> list[int]:
    """Where the calls of a nest begin that have other names for the host; none where it is not of this kind."""
    places, signs = [start], set[str]()
    for half in _arguments(text, start):
        if not text.startswith(_JOIN, half):
            return []
        places.append(half)
        for quarter in _arguments(text, half):
            narrow = _NARROW.match(text, quarter)
            if narrow is None:
                return []
            *_, mask = _arguments(text, quarter)
            if not text.startswith(f"{_ALL_LANES})", mask):
                return []
            signs.add(narrow[1])
            places.append(quarter)
    return places if len(places) == 7 and len(signs) == 1 else []


def _arguments(text: str, call: int) -> Iterator[int]:
    """Where the arguments of a call begin."""
    depth, at = 0, text.index("(", call) + 1
    yield at
    for found in _BRACKET_OR_COMMA.finditer(text, at):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth < 0:
            return
        if not depth and found[0].startswith(","):
            yield found.end()
