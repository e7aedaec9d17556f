"""The text of a Relay program as tokens with their places."""

from __future__ import annotations

import bisect
import linecache
import math
import re
from enum import Enum
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import Span
from compass_core.reading.limits import TEXT_BYTES
from compassc.relay.errors import DiagnosticError

CODE = "relay-text"
KEYWORDS = frozenset("let fn def if else type match match? extern free_var ref ref_read ref_write".split())


class Kind(Enum):
    """What a token is, as errors call it."""

    NAME = "a name"
    KEYWORD = "a keyword"
    LOCAL = "a variable"
    GRAPH = "a numbered expression"
    GLOBAL = "a global"
    NUMBER = "a number"
    STRING = "a text in quotes"
    META = "a reference to metadata"
    VERSION = "a version"
    SIGN = "a sign"
    END = "the end of the text"


@dataclass(frozen=True)
class Token:
    """A piece of text: its kind, what it stands for, and where it begins and ends."""

    kind: Kind
    value: Any
    start: int
    stop: int


@dataclass(frozen=True)
class Number:
    """A number as it is written: its value and data type."""

    value: int | float | bool
    dtype: str

    def array(self) -> Array:
        """The number as a tensor."""
        return np.array(self.value, self.dtype)


_LETTER, _INNER = r"[A-Za-z_/]", r"[A-Za-z_/0-9]"
_NAME = rf"{_LETTER}{_INNER}*"
_TOKEN = re.compile(
    rf"""
      (?P<space>   (?: [ \t\n] | \r\n | //[^\n]* )+ )
    | (?P<comment> /\* )
    | (?P<arrow>   -> | => )
    | (?P<number>  -*[0-9][0-9.eE+-]*(?:[fi][0-9]*)? )
    | (?P<infinity> -*inff[0-9]*(?!{_INNER}) )
    | (?P<local>   %{_NAME} )
    | (?P<graph>   %[0-9]+ )
    | (?P<global>  @(?:{_NAME}|"[^"\n]*") )
    | (?P<string>  "[^"]*" )
    | (?P<meta>    meta\[[A-Za-z_0-9.]+\]\[[0-9]+\] )
    | (?P<match>   match\? )
    | (?P<sign>    /(?!{_INNER}) | [<>=!]= | [][(){{}},;:.=<>?+*-] )
    | (?P<name>    {_NAME} )
    | (?P<version> \#\[\s*version\s*=\s*"[^"\n]*"\s*\] )
    | (?P<section> \#\[metadata\] )
    """,
    re.VERBOSE,
)
_COMMENT_END = re.compile(r"/\*|\*/")
_PIECES = re.compile(r"(-*)([0-9.eE+-]+|inf)(?:([fi])([0-9]*))?")
_WIDTHS = {"i": (16, 32, 64), "f": (16, 32, 64)}
_META = re.compile(r"meta\[([^]]+)\]\[([0-9]+)\]")


class Source:
    """A text and where its lines begin."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        TEXT_BYTES.check(len(text.encode("utf-8", "surrogatepass")), name)
        self._starts = [0, *[m.end() for m in re.finditer("\n", text)]]
        # errors show lines of texts that lie in no file, too
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)

    def position(self, offset: int) -> tuple[int, int]:
        """The line and the column of a place, from 1."""
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def span(self, start: int, stop: int) -> Span:
        """The place from one offset up to another."""
        return Span(self.name, *self.position(start), *self.position(max(stop, start)))

    def error(self, message: str, start: int, stop: int, help: str = "") -> DiagnosticError:
        """The error at a place."""
        return DiagnosticError(message, self.span(start, stop), code=CODE, help=help)


class Lexer:
    """The tokens of a source, the last of which is its end; `section`: the metadata, and where it begins."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.section: tuple[str, int] | None = None
        self.tokens: list[Token] = []
        self._read()

    def _read(self) -> None:
        text, at = self.source.text, 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise self._unknown(at)
            kind, stop = str(found.lastgroup), found.end()
            if kind == "comment":
                stop = self._comment(at)
            elif kind == "section":
                self.section = text[stop:], at
                break
            elif kind != "space":
                self.tokens.append(self._token(kind, found.group(), at, stop))
            at = stop
        self.tokens.append(Token(Kind.END, None, at, at))

    def _unknown(self, at: int) -> DiagnosticError:
        char = self.source.text[at]
        if char == '"':
            return self.source.error("this text has no end", at, at + 1, 'add "')
        if char == "#":
            return self.source.error(
                "there is no such attribute of a text", at, at + 1, 'known: #[version = "0.0.5"] and #[metadata]'
            )
        return self.source.error(f"{char!r} has no meaning here", at, at + 1)

    def _comment(self, start: int) -> int:
        """Where a comment ends, in which others may stand."""
        depth, at = 1, start + 2
        while depth:
            found = _COMMENT_END.search(self.source.text, at)
            if found is None:
                raise self.source.error("this comment has no end", start, start + 2, "add */")
            depth += 1 if found.group() == "/*" else -1
            at = found.end()
        return at

    def _token(self, kind: str, text: str, start: int, stop: int) -> Token:
        if kind in ("number", "infinity"):
            return Token(Kind.NUMBER, self._number(text, start, stop), start, stop)
        if kind == "name" and text in ("True", "False"):
            return Token(Kind.NUMBER, Number(text == "True", "bool"), start, stop)
        if kind == "match" or (kind == "name" and text in KEYWORDS):
            return Token(Kind.KEYWORD, text, start, stop)
        if kind == "meta":
            reference = _META.fullmatch(text)
            assert reference is not None, "the token has that form"
            key, index = reference.groups()
            return Token(Kind.META, (key, int(index) if len(index) < _DIGITS else -1), start, stop)
        if kind == "graph":
            return Token(Kind.GRAPH, text[1:].lstrip("0") or "0", start, stop)
        if kind in ("arrow", "sign"):
            return Token(Kind.SIGN, text, start, stop)
        value = text[1:].strip('"') if kind in ("local", "global", "string") else text
        return Token(Kind[kind.upper()], value if kind != "string" else text[1:-1], start, stop)

    def _number(self, text: str, start: int, stop: int) -> Number:
        """The value of a number. Its signs count: an odd number of them makes it negative."""
        found = _PIECES.fullmatch(text)
        assert found is not None, "the token has that form"
        signs, digits, suffix, width = found.groups()
        bits = int(width) if width and len(width) < _DIGITS else 32
        if width and bits not in _WIDTHS[suffix]:
            raise self.source.error(f"a number has no {width} bits", start, stop, "widths are 16, 32 and 64")
        sign = -1 if len(signs) % 2 else 1
        if suffix == "f":
            return self._float(digits, sign, bits, start, stop)
        if not digits.isdigit():
            raise self.source.error(
                f"{text} is no whole number", start, stop, "put f behind real numbers, and spaces around operators"
            )
        if len(digits) > _DIGITS:
            raise self.source.error("the number is unrepresentable in 64 bits", start, stop)
        value = sign * int(digits)
        fits = -(1 << bits - 1) <= value < 1 << bits - 1
        if not fits and suffix is None:
            bits, fits = 64, -(1 << 63) <= value < 1 << 63
        if not fits:
            raise self.source.error(f"{value} is unrepresentable in width {bits}", start, stop)
        return Number(value, f"int{bits}")

    def _float(self, digits: str, sign: int, bits: int, start: int, stop: int) -> Number:
        try:
            value = float(digits)
        except ValueError:
            raise self.source.error(f"{digits} is no number", start, stop, "put spaces around operators") from None
        with np.errstate(over="ignore"):
            too_large = digits != "inf" and math.isinf(np.array(value).astype(f"float{bits}").item())
        if too_large:
            raise self.source.error(f"{digits} is unrepresentable in width {bits}", start, stop)
        return Number(math.copysign(value, sign), f"float{bits}")


_DIGITS = 20
"""More digits than a number of 64 bits has."""
