"""What a kernel's C text promises beside its code, and what code for the host makes of that."""

from __future__ import annotations

import re

UNCLIPPED = "__compass_unclipped"
"""A macro without content; where a text calls it, no sum of its dot products leaves the range of its accumulator."""
ONLY_READ = "__compass_only_read"
"""A macro around the pointer to a copy, in the call that copies: it is only read, by this pointer, and the source stays. It
is the place of the copy; in plain runs on a host the pointer becomes the source's (compass/device.h)."""
_CALLED = re.compile(rf"{UNCLIPPED}\(\);(?<=\b{UNCLIPPED}\(\);)")
_CLIPPING = re.compile(r"\b__v(?=q?dpa\()")


def kept(text: str) -> str:
    """The text of one kernel file with dot products that do not clip (`__wdpa`, `__wqdpa`), where it promises that none
    has to. Every character stays where it is."""
    return _CLIPPING.sub("__w", text) if _CALLED.search(text) else text
