"""Macros of the framework's script: statements by a name, and the names that decorated functions may use."""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType

from ..language.source import definition, file_of


class Macro:
    """Statements that calls stand for, in functions of the script. `hygienic`: names that are no parameters are those of the
    place of the definition, else those of the place of the call."""

    def __init__(self, function: Callable[..., object], hygienic: bool) -> None:
        self.node, self.file, self.hygienic = definition(function), file_of(function), hygienic
        self.signature, self.known = inspect.signature(function), known(function)


def macro(function: Callable[..., object] | None = None, hygienic: bool = True) -> Callable[..., Macro] | Macro:
    """The statements of a decorated function, which a call of it stands for."""
    return functools.partial(Macro, hygienic=hygienic) if function is None else Macro(function, hygienic)


def _around(function: Callable[..., object]) -> dict[str, object]:
    """The names of the functions and classes that a function is being defined in: what stands in annotations alone is no
    part of its closure."""
    found: dict[str, object] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals is not function.__globals__:
        frame = frame.f_back
    while frame is not None and frame.f_globals is function.__globals__:
        found = {**frame.f_locals, **found}
        frame = frame.f_back
    return found


def _closed_over(function: Callable[..., object]) -> Iterator[tuple[str, object]]:
    """The variables of the functions around one, of which some may have no value yet: its own name."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with suppress(ValueError):
            yield name, cell.cell_contents


def known(function: Callable[..., object]) -> dict[str, object]:
    """The names that a decorated function may use."""
    return {**vars(builtins), **function.__globals__, **_around(function), **dict(_closed_over(function))}
