"""Text with run-time numbers in it, which only S.printf can show: `f"n = {n}"`, `"n = " + str(n)`, `"{}".format(n)`.

What an integer looks like is the same in Python and for `%d`; of everything else only S.printf's own formats tell how it
is written, so text of it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import Formatter
from typing import NoReturn

from compass_core.errors import CompassError

from ...ops.misc import parse_format
from .values import Value, is_runtime, kind_name

_SIMPLE = re.compile(r"%([dius%])")


def no_text(value: object) -> CompassError:
    """The error of converting a run-time value to text while the kernel is parsed."""
    what = f"a run-time {value.dtype}" if isinstance(value, Value) else kind_name(value)
    is_float = isinstance(value, Value) and value.dtype.is_floating
    return CompassError(
        f"{what} has no text while the kernel is parsed",
        code="runtime-text",
        help=f'let the run print it: S.printf("{"%f" if is_float else "%d"}\\n", x)',
    )


class RuntimeText:
    """Strings and run-time integers one after another."""

    __hash__ = None  # type: ignore[assignment]
    what = "text with run-time values"

    def __init__(self, *parts: str | Value) -> None:
        self.parts = parts

    def __add__(self, other: object) -> RuntimeText:
        if not isinstance(other, (str, RuntimeText)):
            return NotImplemented
        return RuntimeText(*self.parts, *_parts(other))

    def __radd__(self, other: object) -> RuntimeText:
        return RuntimeText(other, *self.parts) if isinstance(other, str) else NotImplemented

    def _no_value(self, *_args: object) -> NoReturn:
        raise CompassError(
            "text with run-time values is not known while the kernel is parsed",
            code="runtime-text",
            help="give it to S.printf; compare the values themselves",
        )

    __eq__ = __ne__ = __bool__ = __str__ = __format__ = __len__ = __iter__ = _no_value

    def printf(self, rest: list[object]) -> list[object]:
        """The arguments of S.printf for the text and what else was given: format, then values in its order."""
        text, values, others = "", [], list(rest)
        for part in self.parts:
            if isinstance(part, str):
                taken = len(parse_format(part))
                values += others[:taken]
                others = others[taken:]
                text += part
            else:
                text += "%u" if part.dtype.is_uint else "%d"
                values.append(part)
        return [text, *values, *others]


def _parts(x: str | RuntimeText) -> tuple[str | Value, ...]:
    return x.parts if isinstance(x, RuntimeText) else (x,)


def joined(pieces: list[str | RuntimeText]) -> str | RuntimeText:
    """Pieces of text as one."""
    texts = [p for p in pieces if isinstance(p, str)]
    if len(texts) == len(pieces):
        return "".join(texts)
    return RuntimeText(*(part for p in pieces for part in _parts(p)))


def text_of(value: object, spec: str = "") -> RuntimeText:
    """A run-time value as text."""
    if (
        not (isinstance(value, Value) and value.dtype.is_scalar and value.dtype.is_integer)
        or value.dtype.is_bool
        or spec not in ("", "d")
    ):
        raise no_text(value)
    return RuntimeText(value)


def format_text(template: str, args: list[object], kwargs: dict[str, object]) -> str | RuntimeText:
    """`template.format(*args, **kwargs)` with run-time values among the arguments."""
    pieces: list[str | RuntimeText] = []
    formatter, number = Formatter(), 0
    for text, name, spec, conversion in formatter.parse(template):
        pieces.append(text)
        if name is None:
            continue
        if name == "":
            name, number = str(number), number + 1
        value = formatter.get_field(name, args, kwargs)[0]
        if is_runtime(value):
            if conversion not in (None, "s"):
                raise no_text(value)
            pieces.append(text_of(value, spec or ""))
        else:
            pieces.append(
                format(formatter.convert_field(value, conversion), formatter.vformat(spec or "", args, kwargs))
            )
    return joined(pieces)


def percent_text(template: str, values: object) -> str | RuntimeText:
    """`template % values` with run-time values among them."""
    given: Iterator[object] = iter(values if isinstance(values, tuple) else (values,))
    pieces: list[str | RuntimeText] = []
    position = 0
    for match in re.finditer("%", template):
        if match.start() < position:
            continue
        simple = _SIMPLE.match(template, match.start())
        if simple is None:
            raise CompassError(
                f"the format {template!r} takes more than %d and %s of run-time values",
                code="runtime-text",
                help="give it to S.printf with the values: S.printf(format, x)",
            )
        pieces.append(template[position : match.start()])
        position = simple.end()
        value = "%" if simple[1] == "%" else next(given, None)
        pieces.append(text_of(value) if is_runtime(value) else str(value))
    if next(given, None) is not None:
        raise CompassError("not all values are used by the format", code="runtime-text", help="write %d for each")
    return joined([*pieces, template[position:]])
