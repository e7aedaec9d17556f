"""Where in the user's source a TEC is, and errors that say so."""

from __future__ import annotations

import bdb
import os
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, TracebackType

import compass_core
from compass_core.errors import CompassError, Note, Span
from compass_core.rendering import text

from .assign import KERNEL_CODE

_MAX_CALLS = 8


@cache
def _is_user_file(file: str) -> bool:
    """Whether a file is neither part of the toolchain nor of Python or its packages."""
    paths = sysconfig.get_paths()
    ours = [Path(__file__).parents[3], Path(compass_core.__file__).parent]
    folders = [*map(str, ours), paths["stdlib"], paths["purelib"], paths["platlib"], str(Path(os.__file__).parent)]
    return not file.startswith("<") and not file.startswith(tuple(f + os.sep for f in folders))


def is_user_code(code: CodeType) -> bool:
    """Whether a debugger's user would call this code theirs: a kernel, or a helper it calls."""
    return code in KERNEL_CODE or _is_user_file(code.co_filename)


def _span(code: CodeType, instruction: int, line: int) -> Span:
    """The source range of an instruction."""
    positions = getattr(code, "co_positions", None)
    if positions is None:
        return Span(code.co_filename, line)
    first, last, col, end_col = list(positions())[instruction // 2]
    if first is None or col is None:
        return Span(code.co_filename, line)
    return Span(code.co_filename, first, col + 1, last or 0, (end_col or 0) + 1)


def user_span(frame: FrameType | None) -> Span | None:
    """The innermost user line of a running stack."""
    while frame is not None:
        if is_user_code(frame.f_code):
            return _span(frame.f_code, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return None


def current_span() -> Span | None:
    """The user line that runs in this thread."""
    return user_span(sys._getframe(1))


def _chain(trace: TracebackType | None) -> list[Span]:
    """The user lines of a traceback, outermost first."""
    found = []
    while trace is not None:
        if is_user_code(trace.tb_frame.f_code):
            found.append(_span(trace.tb_frame.f_code, trace.tb_lasti, trace.tb_lineno))
        trace = trace.tb_next
    return found


def located(error: BaseException, tec: int) -> BaseException:
    """The error of a TEC as the caller of the kernel gets it: a CompassError with the TEC, the user's line and the
    calls that led to it, caused by the original one. What ends programs and debuggers stays as it is."""
    if not isinstance(error, Exception) or isinstance(error, bdb.BdbQuit):
        return error
    chain = _chain(error.__traceback__)
    if isinstance(error, CompassError):
        found = error
    else:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        found = CompassError(said, code="python", help="the Python traceback is in __cause__")
        found.__cause__ = error
    inner = chain.pop() if chain else None
    found.span = found.span or inner
    calls = [Note("called from here", span) for span in chain[::-1][:_MAX_CALLS]]
    found.notes = (*found.notes, *calls, Note(f"raised by TEC{tec} of a PySim run"))
    if hasattr(found, "add_note"):  # what Python shows below an exception that nobody catches
        found.add_note(text(found).partition("\n")[2])
    return found
