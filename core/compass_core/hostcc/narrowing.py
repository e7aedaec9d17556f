"""Numbers that a kernel's C text narrows to half or a quarter of their width, on hosts that narrow and join vectors in one
instruction.

The dialect narrows each of two or four vectors in its place and then picks the even elements of two, and of two again. Of
such an expression, where all lanes are narrowed with saturation, code for the host calls functions of other names
(compass/convert.h), which only shift before they join: clang does not find these instructions by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_JOIN = "__vexte("
_NARROW = re.compile(r"__v(?=nsrasr?_(?P<half>h_)?(?P<sign>[su])\()")
_NEST = re.compile(r"__vexte\((?=(?:__vexte\()?__vnsrasr?_(?:h_)?[su]\()")
_ALL_WORDS, _ALL_HALVES = "__vmov_w(286331153))", "__vmov_h(1431655765))"
"""The masks of all lanes of 32 and of 16 bits, as last arguments."""
_BRACKET_OR_COMMA = re.compile(r"[()]|,\s*")


def joined(text: str) -> str:
    """The text of one kernel file with such expressions computed by the host's functions. Every character stays where it is."""
    parts, at = [], 0
    for place, letter in sorted(call for nest in _NEST.finditer(text) for call in _called(text, nest.start())):
        parts += [text[at:place], "__", letter]
        at = place + len("__v")
    return "".join([*parts, text[at:]])


def _called(text: str, start: int) -> list[tuple[int, str]]:
    """Where the calls of a nest begin that have other names for the host, and the letters that these have in the place of v;
    none where it is not of this kind."""
    inner = list(arguments(text, start))
    if all(text.startswith(_JOIN, at) for at in inner):
        quarters = [at for half in inner for at in arguments(text, half)]
        found = {_kind(text, at) for at in quarters}
        return [(at, "w") for at in (start, *inner, *quarters)] if found in ({"s"}, {"u"}) else []
    found = {_kind(text, at) for at in inner}
    pair = len(found) == 1 and not found & {"", "s", "u"}
    return [(start, "p"), *((at, "w") for at in inner)] if pair else []


def _kind(text: str, at: int) -> str:
    """What a call makes of all lanes, signed or unsigned numbers: a quarter of words (s, u), half of words or of halves (s2,
    u2, s1, u1); nothing where it is another call."""
    narrow = _NARROW.match(text, at)
    if narrow is None:
        return ""
    *_, mask = arguments(text, at)
    if text.startswith(_ALL_WORDS, mask):
        return narrow["sign"] + ("2" if narrow["half"] else "")
    return narrow["sign"] + "1" if text.startswith(_ALL_HALVES, mask) and not narrow["half"] else ""


def arguments(text: str, call: int) -> Iterator[int]:
    """Where the arguments of a call begin."""
    depth, at = 0, text.index("(", call) + 1
    yield at
    for found in _BRACKET_OR_COMMA.finditer(text, at):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth < 0:
            return
        if not depth and found[0].startswith(","):
            yield found.end()
