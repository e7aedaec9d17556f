"""Numbers, attribute values and names in the text of Relay."""

from __future__ import annotations

import math

import numpy as np

from compass_core.arrays import Array

LITERAL_DTYPES = {
    "bool": "",
    "float16": "f16",
    "float32": "f",
    "float64": "f64",
    "int16": "i16",
    "int32": "",
    "int64": "i64",
}
"""The data types whose scalars have literals, with the suffix of those."""
NOT_IN_QUOTES = frozenset('"\n\r\x01\x02')
"""What a quoted text, which knows no escapes, cannot hold: ends of it and of lines, marks of the printer."""


def scalar(array: Array) -> str | None:
    """The literal of a tensor without axes, None where it has none."""
    suffix = LITERAL_DTYPES.get(array.dtype.name)
    if suffix is None or array.ndim:
        return None
    value = array.item()
    if array.dtype.kind == "f":
        return None if math.isnan(value) else _float(value, array.dtype.type) + suffix
    return f"{value}{suffix}"


def attribute(value: object) -> str | None:
    """The text of an attribute's value, None where it has none."""
    if isinstance(value, str):
        return None if NOT_IN_QUOTES & set(value) else f'"{value}"'
    if value is None or isinstance(value, (bool, np.bool_)):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return str(value) if -(1 << 63) <= value < 1 << 63 else None
    if isinstance(value, (float, np.floating)):
        return None if math.isnan(value) else f"{_float(value, float)}f"
    if isinstance(value, (list, tuple)):
        texts = [attribute(v) for v in value]
        known = [text for text in texts if text is not None]
        return f"[{', '.join(known)}]" if len(known) == len(texts) else None
    return None


def _float(value: object, kind: type) -> str:
    """Six significant digits, or as many as it takes to read the same value."""
    text = f"{value:.6g}"
    return text if kind(text) == kind(value) else repr(float(str(kind(value))))


def is_letter(char: str) -> bool:
    """Whether a name may begin with it."""
    return char in "_/" or (char.isascii() and char.isalpha())


def is_name(text: str) -> bool:
    """Whether a text is one name."""
    return text != "" and is_letter(text[0]) and all(is_letter(c) or (c.isascii() and c.isdigit()) for c in text)


def name(hint: str, prefix: str) -> str:
    """A hint as a name: with `_` for what names do not have, and `prefix` where it does not begin with a letter."""
    plain = "".join([c if is_letter(c) or (c.isascii() and c.isdigit()) else "_" for c in hint])
    return plain if plain[:1].isalpha() else prefix + plain
