"""Two implementations of every script call, and the choice between them.

An API has an IR side (used while a kernel is parsed) and a Python side (used while PySim runs in this thread). Which
one a call takes is decided by `LOCAL.tec`, the TEC this thread plays: None outside PySim.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compass_core.errors import CompassError

if TYPE_CHECKING:
    from compassc.ops.core import Op


class _Local(threading.local):
    tec: Any = None


LOCAL = _Local()


class _Current(type):
    @property
    def current(cls) -> Any:
        """The PySim session this thread plays a TEC of; None outside PySim."""
        return None if LOCAL.tec is None else LOCAL.tec.session


class PySimInfo(metaclass=_Current):
    """Which PySim run is active: `PySimInfo.current`."""


IR_SIDE: Callable[[Op, tuple[Any, ...], dict[str, Any]], Any] | None = None
"""Builds the IR of an operation call; set by the kernel parser when it is imported."""

APIS: dict[str, list[Callable[..., Any] | None]] = {}
"""Script calls that are not operations: name -> [IR side, Python side]."""

_PYTHON_SIDES = "compassc.pysim.api"


def outside_kernel(name: str) -> CompassError:
    """The error of using a script call where no kernel is parsed or run."""
    return CompassError(
        f"S.{name} can only be used in a kernel",
        code="outside",
        help="call it inside a function decorated with @S.prim_func",
    )


def register_ir_api(func: Callable[..., Any]) -> Callable[..., Any]:
    """Register one side of an API by the function's name.

    `name` is the IR side and is replaced by the dispatching function; `_py_name` is the Python side and is returned
    unchanged.
    """
    text = func.__name__
    slot = 1 if text.startswith("_py_") else 0
    name = text[4:] if slot else text
    sides = APIS.setdefault(name, [None, None])
    if name.startswith("_") or sides[slot] is not None:
        raise ValueError(f"script call {name!r} is private or registered twice")
    sides[slot] = func
    if slot:
        return func

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        if LOCAL.tec is None:
            return func(*args, **kwargs)
        return sides[1](*args, **kwargs)  # type: ignore[misc]

    return call


def load_python_sides() -> None:
    """Import the operations and the Python sides, once; ValueError naming an API that lacks one of its sides."""
    importlib.import_module("compassc.ops").load()
    importlib.import_module(_PYTHON_SIDES)
    for name, sides in APIS.items():
        for what, side in zip(("an IR", "a Python"), sides):
            if side is None:
                raise ValueError(f"script call {name!r} has not {what} implementation")


def op_api(op: Op) -> Callable[..., Any]:
    """The user-visible function of a declared operation."""
    python_side: Callable[..., Any] | None = None

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal python_side
        if LOCAL.tec is None:
            if IR_SIDE is None:
                raise outside_kernel(op.name)
            return IR_SIDE(op, args, kwargs)
        if python_side is None:
            from ..pysim.impl import pysim_impl

            python_side = pysim_impl(op)
        return python_side(*args, **kwargs)

    call.__name__ = call.__qualname__ = op.name
    call.__doc__ = op.doc
    call.__signature__ = op.signature  # type: ignore[attr-defined]
    call.op = op  # type: ignore[attr-defined]
    return call


def convert(value: Any, name: Any) -> Any:
    """`S.int32(value)` and the like: a cast to the dtype of a dtype name."""
    if LOCAL.tec is not None:
        return _cast_in_pysim()(value, name.dtype)
    if IR_SIDE is None:
        raise outside_kernel(str(name.dtype))
    from compassc.ops import get

    return IR_SIDE(get("cast"), (value, name.dtype), {})


@functools.cache
def _cast_in_pysim() -> Callable[..., Any]:
    from compassc.ops import get
    from compassc.pysim.impl import pysim_impl

    return pysim_impl(get("cast"))
