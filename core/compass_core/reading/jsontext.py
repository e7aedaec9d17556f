"""JSON from files: invalid or too deeply nested JSON is refused with its position."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from compass_core.errors import CompassError, Span
from compass_core.reading.limits import JSON_DEPTH

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""What a JSON text stands for."""


def parse(text: str | bytes, where: str, code: str = "not-json", what: str = "this") -> Any:
    """The value of a JSON text from the file `where`. CompassError with `code` at the line that is wrong; `what` the text
    is to be."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise JSON_DEPTH.error(where, found="it nests deeper") from None
    except json.JSONDecodeError as error:
        raise CompassError(
            f"{what} is no JSON: {error.msg}", Span(where, error.lineno, error.colno), code=code
        ) from None
    except ValueError as error:  # bytes that are no text, numbers of thousands of digits
        raise CompassError(f"{what} is no JSON: {error}", Span(where, 1), code=code) from None
    level, nested = 0, [value] if type(value) in _NESTED else []
    while nested:
        level += 1
        if level > JSON_DEPTH.most:
            raise JSON_DEPTH.error(where, found="it nests deeper")
        parts = [item.values() if type(item) is dict else item for item in nested]
        nested = [part for items in parts for part in items if type(part) in _NESTED]
    return value


_NESTED = frozenset((dict, list))
"""What JSON nests by."""
