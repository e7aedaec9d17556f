"""Where in the user's source a TEC is, and errors that say so."""

from __future__ import annotations

import bdb
import functools
import re
import sys
from types import CodeType, FrameType, TracebackType

from compass_core.errors import CompassError, Note, Span

from ..language.python_errors import hint
from ..language.source import code_span, is_user_file
from ..language.specs import no_attribute
from .code import KERNEL_CODE

_MAX_CALLS = 8
_API = re.compile(r"S\.(\w+): ")
_TERMS = {
    "PyVar": "value",
    "PyPointer": "pointer",
    "PyBuffer": "buffer",
    "PyDescPointer": "descriptor",
    "PyEvent": "event",
}
_BUILT_IN = (
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    NameError,
    NotImplementedError,
    OverflowError,
    TypeError,
    ValueError,
    ZeroDivisionError,
)
"""Built-in errors whose type a kernel's error keeps: programs written for the vendor's packages catch them."""
_OUR_TYPES = re.compile(rf"\b({'|'.join(_TERMS)})\b")


def is_user_code(code: CodeType) -> bool:
    """Whether a debugger's user would call this code theirs: a kernel, or a helper it calls."""
    return code in KERNEL_CODE or is_user_file(code.co_filename)


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of user code in a running stack."""
    while frame is not None and not is_user_code(frame.f_code):
        frame = frame.f_back
    return frame


def user_span(frame: FrameType | None) -> Span | None:
    """The innermost user line of a running stack."""
    found = user_frame(frame)
    return None if found is None else code_span(found.f_code, found.f_lasti, found.f_lineno)


def current_span() -> Span | None:
    """The user line that runs in this thread."""
    return user_span(sys._getframe(1))


def _chain(trace: TracebackType | None) -> list[Span]:
    """The user lines of a traceback, outermost first."""
    found = []
    while trace is not None:
        if is_user_code(trace.tb_frame.f_code):
            found.append(code_span(trace.tb_frame.f_code, trace.tb_lasti, trace.tb_lineno))
        trace = trace.tb_next
    return found


def _of_python(error: Exception) -> CompassError:
    """An exception of Python in the words of a kernel's author."""
    owner = getattr(error, "obj", None)
    attributes = getattr(type(owner), "attributes", None)
    if isinstance(error, AttributeError) and attributes is not None:
        kind = f"{owner.dtype}*" if hasattr(owner, "scope") else str(owner.dtype)  # type: ignore[union-attr]
        found = no_attribute(attributes, kind, str(error.name), _as_well(AttributeError))
    elif isinstance(error, ValueError) and str(error) == "assignment destination is read-only":  # NumPy's words
        found = CompassError(
            "the kernel writes to an array that is read-only", code="read-only", help="pass a copy of it: array.copy()"
        )
    else:
        text = _OUR_TYPES.sub(lambda m: _TERMS[m[1]], str(error))
        name = next(kind.__name__ for kind in type(error).__mro__ if not kind.__name__.startswith("_"))
        said = f"{name}: {text}" if text else name
        error_class = _as_well(next((k for k in _BUILT_IN if isinstance(error, k)), None))
        help = getattr(error, "help", "") or hint(error) or "the Python traceback is in __cause__"
        found = error_class(said, code="python", help=help)
    found.__cause__ = error
    return found


@functools.cache
def _as_well(kind: type[Exception] | None) -> type[CompassError]:
    """The class of errors that are CompassErrors and errors of a built-in kind."""
    return CompassError if kind is None else type(f"Kernel{kind.__name__}", (CompassError, kind), {})


def _refusal(error: CompassError) -> CompassError:
    """An error without a more special type, which is an AssertionError too, as in the vendor's packages."""
    if type(error) is CompassError:
        error.__class__ = _as_well(AssertionError)
    return error


def located(error: BaseException, tec: int) -> BaseException:
    """The error of a TEC as the caller of the kernel gets it: a CompassError with the TEC, the user's line and the
    calls that led to it, caused by the original one. Exceptions that end programs or debuggers are not changed."""
    if not isinstance(error, Exception) or isinstance(error, bdb.BdbQuit):
        return error
    chain = _chain(error.__traceback__)
    found = _refusal(error) if isinstance(error, CompassError) else _of_python(error)
    api = _API.match(found.message)
    found.help = found.help or (f"`compassc ops {api[1]}` shows what it takes" if api else "")
    inner = chain.pop() if chain else None
    found.span = found.span or inner
    calls = [Note("called from here", span) for span in chain[::-1][:_MAX_CALLS]]
    found.notes = (*found.notes, *calls, Note(f"raised by TEC{tec} of a PySim run"))
    return found
