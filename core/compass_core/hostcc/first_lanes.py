"""Stores of a kernel's C text whose mask is a number: where it is that of first lanes alone, a host copies so many bytes.

Hosts without masked stores find out at run time what a mask is, by code that is long for clang and for them.
"""

from __future__ import annotations

import re

from compass_core.hostcc.narrowing import arguments

_STORE = re.compile(
    r"^ *__(?P<letter>v)store\(.*, (?P<mask>__vmov_(?P<kind>[bhw])\((?P<bits>0[xX][0-9a-fA-F]{1,8}|[1-9]\d*)\)\);)$",
    re.MULTILINE,
)
_LANES = {"b": 32, "h": 16, "w": 8}


def copied(text: str) -> str:
    """The text of one kernel file with such stores by the host's function (`__wstore`). Every character stays where it is."""
    parts, at = [], 0
    for store in _STORE.finditer(text):
        *_, last = arguments(text, store.start("letter"))
        if last == store.start("mask") and _are_first(int(store["bits"], 0), _LANES[store["kind"]]):
            parts += [text[at : store.start("letter")], "w"]
            at = store.end("letter")
    return "".join([*parts, text[at:]])


def _are_first(bits: int, lanes: int) -> bool:
    """Whether a predicate, whose lane i is bit i * (32 / `lanes`), has the first lanes and no others."""
    step = 32 // lanes
    count = (bits & 0xFFFFFFFF // ((1 << step) - 1)).bit_count()
    return count > 0 and bits == sum(1 << lane * step for lane in range(count))
