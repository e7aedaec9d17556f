"""Values of attributes: numbers, words, data types, truth values and lists of values, and how the text spells them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compass_core.errors import CompassError
from compassc.graph.dtypes import IR_DTYPES

MAX_DEPTH = 16
"""Nesting of lists beyond which a value is refused."""
_INT = re.compile(r"[+-]?\d{1,40}$")
_FLOAT = re.compile(r"[+-]?(?:(?:\d+\.\d*|\.\d+)(?:e[+-]?\d+)?|\d+e[+-]?\d+)$|[+-]?inf$", re.IGNORECASE)


class IRDType(str):
    """A data type as a value: its name, in lower case. Differs from a plain string by its class only."""

    __slots__ = ()


Value = bool | int | float | str | Sequence["Value"]


def parse_value(text: str, words: bool = False, depth: int = 0) -> Value:
    """The value that `text` spells; lists are recursive. CompassError when lists nest too deeply.

    `words`: what is no list is a word whatever it looks like, as names are.
    """
    if depth > MAX_DEPTH:
        raise CompassError(f"lists nest more than {MAX_DEPTH} levels deep", code="compass-ir")
    if (parts := _list_items(text)) is not None:
        return [parse_value(part, words, depth + 1) for part in parts]
    return text if words else _scalar(text)


def _scalar(text: str) -> Value:
    lower = text.lower()
    if lower.removeprefix("dtype.") in IR_DTYPES:
        return IRDType(lower.removeprefix("dtype."))
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    if lower in ("true", "false"):
        return lower == "true"
    return text


def _list_items(text: str) -> list[str] | None:
    """The element texts of a list, or None when `text` is not one balanced pair of brackets."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    items, depth, start = [], 0, 1
    for at, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
            if depth == 0 and at != len(text) - 1:
                return None
        elif char == "," and depth == 1:
            items.append(text[start:at])
            start = at + 1
    if depth:
        return None
    items.append(text[start:-1])
    return [item for item in (part.strip(" '") for part in items) if item]


def format_value(value: Value | None) -> str:
    """The text of a value, as `parse_value` reads it; lists without blanks."""
    if value is None:
        return "None"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, float)):
        return repr(value)
    return "[" + ",".join(format_value(item) for item in value) + "]"


def plain(value: object) -> Value:
    """A value as the text can hold it: arrays, tuples and NumPy's numbers as lists and Python's numbers."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    raise TypeError(f"{value!r:.80} is no value of an attribute")
