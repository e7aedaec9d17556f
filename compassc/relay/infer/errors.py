"""Errors of type inference: what does not fit, with the line of the expression."""

from __future__ import annotations

from collections.abc import Sequence

from compass_core.errors import Note
from compassc.relay.errors import DiagnosticError
from compassc.relay.expr import Expr


class TypeInferenceError(DiagnosticError):
    """Types of a Relay program that do not fit, or cannot be found."""


def error(e: Expr, message: str, notes: Sequence[Note | str] = (), help: str = "") -> TypeInferenceError:
    """The error of an expression, at its place in a text or the line of Python that made it."""
    place = getattr(e, "span", None) or e.made_at_
    return TypeInferenceError(message, place, code="relay-type", notes=tuple(notes), help=help)
