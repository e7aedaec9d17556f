"""Errors of programs in Relay: what is wrong, at the place in the text that it came from."""

from __future__ import annotations

from compass_core.errors import CompassError


class DiagnosticError(CompassError, ValueError):
    """A program that cannot be read, or whose types do not fit."""
