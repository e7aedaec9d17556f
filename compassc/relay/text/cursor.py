"""A place in the tokens of a text: looking at them, taking them, saying what was expected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from compass_core.errors import CompassError, Span
from compass_core.reading.limits import IR_DEPTH
from compassc.relay.errors import DiagnosticError
from compassc.relay.text.lexer import Kind, Source, Token

T = TypeVar("T")


class Cursor:
    """The tokens that are left."""

    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.source, self.tokens = source, tokens
        self.at = 0
        self._depth = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    def ahead(self, count: int) -> Token:
        """The token that many places further."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    def take(self) -> Token:
        """The next token, which is passed."""
        token = self.tokens[self.at]
        if token.kind is not Kind.END:
            self.at += 1
        return token

    def is_at(self, text: str) -> bool:
        """Whether a sign or keyword is next."""
        token = self.tokens[self.at]
        return token.value == text and token.kind in (Kind.SIGN, Kind.KEYWORD)

    def accept(self, text: str) -> bool:
        """Pass a sign or keyword, if it is next."""
        found = self.is_at(text)
        self.at += found
        return found

    def expect(self, text: str) -> Token:
        """Pass a sign or keyword. DiagnosticError where something else is next."""
        if not self.is_at(text):
            raise self.unexpected(f"'{text}'")
        return self.take()

    def expect_kind(self, kind: Kind) -> Token:
        """Pass a token of a kind. DiagnosticError where something else is next."""
        if self.token.kind is not kind:
            raise self.unexpected(kind.value)
        return self.take()

    def unexpected(self, wanted: str, help: str = "") -> DiagnosticError:
        """The error for the next token."""
        token = self.token
        found = self.source.text[token.start : token.stop]
        shown = f"'{found}'" if token.kind is not Kind.END else Kind.END.value
        return self.error(f"expected {wanted}, found {shown}", token, help=help)

    def error(self, message: str, first: Token, last: Token | None = None, help: str = "") -> DiagnosticError:
        """The error of a range of tokens."""
        return self.source.error(message, first.start, (last or first).stop, help)

    def span(self, first: Token) -> Span:
        """The place from a token up to the last one that was passed."""
        return self.source.span(first.start, self.tokens[max(self.at - 1, 0)].stop)

    def listed(self, close: str, item: Callable[[], T]) -> Iterator[T]:
        """Items between commas up to a closing sign, which is passed; a comma may stand before it."""
        while not self.accept(close):
            yield item()
            if not self.is_at(close):
                self.expect(",")

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One level deeper in types, patterns or values."""
        self._depth += 1
        if self._depth > IR_DEPTH.most:
            raise self.error(f"this nests deeper than {IR_DEPTH.most} levels", self.token, help="name parts of it")
        yield
        self._depth -= 1

    @contextmanager
    def placed(self, first: Token) -> Iterator[None]:
        """Errors of what is made here, which know no place in the text, are those of the tokens from `first` on."""
        try:
            yield
        except DiagnosticError:
            raise
        except CompassError as error:
            raise self.error(error.message, first, self.tokens[max(self.at - 1, 0)], error.help) from None

    def whole(self, token: Token) -> int:
        """The whole number that a token is. DiagnosticError where it is none."""
        value = token.value
        if token.kind is not Kind.NUMBER or value.dtype == "bool" or not isinstance(value.value, int):
            raise self.error("expected a whole number", token)
        return int(value.value)
