"""Loads and stores of all lanes in a kernel's C text, which are plain accesses to memory on hosts.

clang chooses the function of such a call among dozens and puts it in the place of the call, only to find that out: this takes
twice as long as the access itself.
"""

from __future__ import annotations

import re

_DEEPEST = 9
"""How deep brackets may lie in each other."""


def _with_brackets(apart: str = "", deep: int = _DEEPEST) -> str:
    """A pattern of a line's characters, but for those `apart`, and of pairs of brackets with whatever in them."""
    inner = _with_brackets(deep=deep - 1) if deep else r"[^()\n]*"
    return rf"[^()\n{apart}]*(?:\({inner}\)[^()\n{apart}]*)*"


_VECTOR = r"\(__(?:global|local|lsram) (?:u?(?:char32|short16|int8)|half16|bf1616|float8)\*\)"
_POINTER = rf"{_VECTOR}(?:\(__\w+ \w+\*\))?(?:\w+|\({_with_brackets()}\))"
"""An address that is made one of vectors: what it points to says the type of the lanes."""
_CALL = re.compile(rf"__v(?=(?:load\((?<!  __vload\()|store\({_with_brackets(',')}, ){_POINTER}, ALL_TRUE_[bhw]\))")
"""But for a load that is a statement: of a plain access whose value nobody takes clang warns."""
_NAMES = ("__fload(", "__vload("), ("__fstore(", "__vstore(")
"""What the calls become, and were."""


def accessed(text: str) -> str:
    """The text with such loads and stores by the host's macros (`__fload`, `__fstore`). Every character stays where it is."""
    return _CALL.sub("__f", text)


def called(text: str) -> str:
    """The text from which `accessed` made this one: what profiles count."""
    for new, old in _NAMES:
        text = text.replace(new, old)
    return text


def readable(text: str) -> str:
    """A text for people: no name of a load or store is one that hosts alone have (`first_lanes` made the other)."""
    return called(text).replace("__wstore(", "__vstore(")
