"""Errors of schedules: each names the line of the user's program that made the wrong step."""

from __future__ import annotations

from collections.abc import Callable

from compass_core.errors import CompassError
from compassc.ir.errors import caller


class ScheduleError(CompassError, ValueError):
    """A step of a schedule is not legal; the message names stage, axis and reason."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message, caller(), code="te-schedule", help=help)
        self.places: Callable[[], str] | None = None
        """Gives the program with the places underlined that the step was about."""

    def __str__(self) -> str:
        return super().__str__() + ("" if self.places is None else f"\n{self.places()}")


class NoSymbol(ScheduleError, IndexError):
    """What stands for nothing in a schedule: of another one, or of what a step removed."""

    __str__ = ScheduleError.__str__


class LowerError(CompassError, ValueError):
    """A schedule has no program for the target: a bound that is not known, memory that does not suffice."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message, caller(), code="te-lower", help=help)
