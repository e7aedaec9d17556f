"""Errors of the runtime that are Python's own kinds too, so that programs written for either catch them."""

from __future__ import annotations

from compass_core.errors import CompassError


class RuntimeValueError(CompassError, ValueError):
    """A name, a shape or a kind that does not exist or does not fit."""


class RuntimeTypeError(CompassError, TypeError):
    """A value of a kind that cannot be passed."""


class RuntimeStateError(CompassError, RuntimeError):
    """Something that cannot be done now, or not twice."""


class MissingFunction(CompassError, AttributeError):
    """A module has no function of that name."""


class FailedAssertion(CompassError, AssertionError):
    """What a kernel asserts does not hold."""
