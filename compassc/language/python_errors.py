"""What to do about an exception of Python that a kernel file, a helper or a kernel in PySim raised."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, TracebackType
from typing import Any

from compass_core import switches
from compass_core.errors.suggest import nearest

_PACKAGES = ("compassc", "compass_core", "compass_runtime", "compass_sim")


def hide_package(error: BaseException) -> None:
    """Leave the users' frames alone in the traceback of an error and of what caused it (COMPASS_TRACEBACK=1: all)."""
    found: BaseException | None = None if switches.TRACEBACK.get() else error
    while found is not None:
        kept: TracebackType | None = None
        for frame, line in reversed(list(_frames(found.__traceback__))):
            if str(frame.f_globals.get("__name__")).partition(".")[0] not in _PACKAGES:
                kept = TracebackType(kept, frame, line.tb_lasti, line.tb_lineno)
        found.__traceback__ = kept
        found = found.__cause__


def _frames(trace: TracebackType | None) -> Iterator[tuple[FrameType, TracebackType]]:
    while trace is not None:
        yield trace.tb_frame, trace
        trace = trace.tb_next


def hint(error: BaseException) -> str:
    """The help text for an exception; empty when nothing can be said in general."""
    for kind, text in _HINTS.items():
        if isinstance(error, kind):
            return text if isinstance(text, str) else text(error)
    return ""


def _did_you_mean(name: str | None, names: Iterable[str]) -> str:
    near = nearest(name, (n for n in names if not n.startswith("_"))) if name else None
    return f"did you mean '{near}'?" if near else ""


def _undefined(error: NameError) -> str:
    frame = _innermost(error.__traceback__)
    names = {**frame.tb_frame.f_globals, **frame.tb_frame.f_locals} if frame else {}
    return _did_you_mean(error.name, [*names, *dir(builtins)]) or "define it before it is used"


def _innermost(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _no_attribute(error: Any) -> str:
    return "" if "did you mean" in str(error) else _did_you_mean(error.name, dir(error.obj))


def _no_import(error: object) -> str:
    if "relative import" in str(error):
        return "build it as a module of its package: compassc build -m PACKAGE.MODULE"
    return "check the spelling of the name and the version of the module"


_HINTS: dict[type[BaseException], str | Callable[[Any], str]] = {
    NameError: _undefined,
    AttributeError: _no_attribute,
    ZeroDivisionError: "test the divisor first",
    ModuleNotFoundError: "install it, or put it beside the kernel file",
    ImportError: _no_import,
    FileNotFoundError: "relative paths start at the folder where the program was started",
    IndexError: "indices go from 0 to the length - 1",
    KeyError: "look with `in` whether the key is there",
    RecursionError: "use a loop: a function that calls itself has no end here",
}
