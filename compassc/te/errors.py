"""Errors of schedules: each names the line of the user's program that made the wrong step."""

from __future__ import annotations

from collections.abc import Callable

from compass_core.errors import CompassError
from compassc.ir.errors import caller


class ScheduleError(CompassError, ValueError):
    """A step of a schedule is not legal; the message names stage, axis and reason."""

    def __init__(self, message: str, help: str = "", brief: str = "") -> None:
        super().__init__(message, caller(), code="te-schedule", help=help)
        self.brief = brief or message
        """The message where it is to be of one line (`fast`)."""
        self.level = "detail"
        """How much the schedule's messages tell (`error_render_level`)."""
        self.step = ""
        """The step that was refused, as errors name it: `compute-at`."""
        self.places: Callable[[], str] | None = None
        """Gives the program with the places underlined that the step was about."""

    def __str__(self) -> str:
        if self.level == "fast":
            return f"{self.span}: ScheduleError: {self.brief}"
        if self.places is None:
            return super().__str__() + (": ScheduleError: (not rendered)" if self.level == "none" else "")
        told = f"ScheduleError: An error occurred in the schedule primitive '{self.step}'."
        return (
            f"{super().__str__()}\n{told}\n\nThe IR with diagnostic is:\n{self.places()}\nError message: {self.message}"
        )

    @property
    def args(self) -> tuple[str]:
        """The text of the error."""
        return (str(self),)

    @args.setter
    def args(self, _: object) -> None:
        """It follows from the rest."""


class NoSymbol(ScheduleError, IndexError):
    """What stands for nothing in a schedule: of another one, or of what a step removed."""

    __str__ = ScheduleError.__str__


class LowerError(CompassError, ValueError):
    """A schedule has no program for the target: a bound that is not known, memory that does not suffice."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message, caller(), code="te-lower", help=help)
