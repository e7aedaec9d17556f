"""The form of names. Names in files are untrusted data: all readers and writers check them here.

A kernel or a parameter is called what Python would let it be called; a symbol of an object is an ASCII identifier. So no
name has a quote, a blank, a line break, a path or an escape sequence in it, wherever it is put. Layers and tensors of a
graph have labels, which are shown and compared, and only have to be printable.
"""

from __future__ import annotations

import re

from compass_core.errors import CompassError

LONGEST = 200
"""Bytes of a name: files are called by it, with something before and behind."""
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_name(text: object) -> bool:
    """Whether a kernel or a parameter may be called that: a Python identifier of at most LONGEST bytes."""
    return isinstance(text, str) and text.isidentifier() and len(text.encode()) <= LONGEST


def is_symbol(text: object) -> bool:
    """Whether a symbol may be called that: an identifier of ASCII letters, digits and underscores."""
    return isinstance(text, str) and len(text) <= LONGEST and _SYMBOL.fullmatch(text) is not None


def is_label(text: object) -> bool:
    """Whether a layer or a tensor of a graph may be called that: characters that can be printed on one line."""
    return isinstance(text, str) and text.isprintable()


def name(text: str, what: str) -> str:
    """`text` when it is a name; else a CompassError about `what` it was to name."""
    if is_name(text):
        return str(text)
    raise _bad(text, what, "an identifier, as in Python")


def symbol(text: object, what: str) -> str:
    """`text` when it is a symbol; else a CompassError about `what` it was to name."""
    if is_symbol(text):
        return str(text)
    raise _bad(text, what, "an identifier of ASCII letters, digits and _")


def _bad(text: object, what: str, wanted: str) -> CompassError:
    return CompassError(f"the {what} {text!r:.80} is no name", code="bad-name", help=f"a name is {wanted}")
