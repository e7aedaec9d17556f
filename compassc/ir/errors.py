"""Errors of programs that make expressions: each names the line of the user's program that made the wrong step."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from pathlib import Path

from compass_core.errors import CompassError, Span

_OWN = (str(Path(__file__).parents[1]) + os.sep, contextlib.__file__)
"""Whose lines are not the user's; `with` enters our functions by way of the second."""


def caller() -> Span | None:
    """The line outside of the compiler that is being run."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_OWN) or "__name__" not in frame.f_globals:  # made of declarations
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return Span(frame.f_code.co_filename, frame.f_lineno)


def warn(message: str) -> None:
    """A UserWarning at the line outside of the compiler that is being run."""
    span = caller()
    warnings.warn_explicit(message, UserWarning, span.file if span else "", span.line if span else 0)


class ExpressionError(CompassError, ValueError):
    """An expression or an operation is not well formed."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message, caller(), code="te-expression", help=help)


class ExpressionTypeError(CompassError, TypeError):
    """Something of the wrong Python type, or of a data type that an operator does not take."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message, caller(), code="te-expression", help=help)
