"""Calls of kernels and of their sub-functions in PySim: the conversions of arguments and return values."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from compass_core import switches, targets
from compass_core.arrays import Array
from compass_core.errors import ArgumentError, CompassError
from compass_core.reading.arrays import other_elements
from compass_core.vendor import wrong_argument_count
from compassc import ops as operations
from compassc.ir.dtypes import DataType, PointerType
from compassc.ops.numeric import np_dtype

from ..language.dispatch import check_sides
from ..language.functions import Param
from . import api  # noqa: F401  (registers the Python sides)
from .assign import with_kernel_assignments
from .checks import Races
from .descriptors import PyDescPointer, chains_of
from .grid import asks_for_group
from .memory import PyBuffer, PyPointer, Storage
from .recursion import refuse_recursion
from .session import PyEvent, Session, Tec
from .values import PINNED, PyVar, pyvar


@functools.cache
def _target(name: str) -> targets.Target:
    operations.load()
    check_sides()
    return targets.load(name)


def run_entry(
    py_func: FunctionType,
    params: Sequence[Param],
    args: Sequence[object],
    target: str | None = None,
    output_dir: Path | None = None,
) -> None:
    """Run a kernel on all TECs of `target`. Pointer arguments are NumPy arrays, modified in place.

    `output_dir`: the folder of the kernel's last build.
    """
    if len(args) != len(params):
        raise wrong_argument_count(py_func.__name__, [p.name for p in params], len(args))
    refuse_recursion(py_func)
    found = _target(target or switches.TARGET.get())
    values = [
        entry_argument(py_func.__name__, position, param.name, param.type, arg)
        for position, (param, arg) in enumerate(zip(params, _apart(args)), 1)
    ]
    whole = [copy for arg, value in zip(args, values) if (copy := _copied(arg, value)) is not None]
    run = with_kernel_assignments(py_func)

    def body(_tec: Tec) -> None:
        run(*[PyVar(v.value, v.dtype) if type(v) is PyVar else v for v in values])

    groups = found.cores if found.cores > 1 and asks_for_group(py_func) else 1
    beside: dict[tuple[int, int], Races] | None = {} if groups > 1 else None
    for group in range(groups):
        session = Session(py_func.__name__, found, output_dir, group, beside)
        for value in values:
            if isinstance(value, PyPointer) and value.storage is not None:
                value.storage.watch = None  # of the group before
                session.watched(value.storage, False, True)
        session.run(body)
    for copy in whole:
        copy.back()


def _apart(args: Sequence[object]) -> list[object]:
    """The arguments, with a copy of each array that shares memory with another one: on the device they have buffers of
    their own."""
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    found = []
    for k, arg in enumerate(args):
        others = [b for i, b in enumerate(args) if i != k and isinstance(b, np.ndarray)] if len(arrays) > 1 else []
        if isinstance(arg, np.ndarray) and any(np.may_share_memory(arg, b) for b in others):
            own = arg.copy()
            own.flags.writeable = arg.flags.writeable
            arg = own
        found.append(arg)
    return found


def _copied(arg: object, value: object) -> _Copy | None:
    """What has to be copied back to an argument; None where kernels see the array itself."""
    if not isinstance(arg, np.ndarray) or not isinstance(value, PyPointer) or value.storage is None:
        return None
    if arg.flags.c_contiguous and np.may_share_memory(arg, value.storage.data):
        return None
    return _Copy(arg, value)


class _Copy:
    """The elements of an array with gaps in one piece, which is what kernels see. `back` copies what a kernel changed."""

    def __init__(self, array: Array, pointer: PyPointer) -> None:
        assert pointer.storage is not None
        self._array, self._data = array, pointer.storage.data
        self._before = self._data.copy()

    def back(self) -> None:
        if not np.array_equal(self._data, self._before):
            self._array[...] = self._data.view(self._array.dtype).reshape(self._array.shape)


def entry_argument(func: str, position: int, name: str, kind: DataType | PointerType, arg: object) -> object:
    """One argument of an entry call as a kernel value."""
    if not isinstance(kind, PointerType):
        if kind.is_vector:
            raise ArgumentError(
                f"{func}: parameter {name} is {kind}: an entry takes scalars and pointers",
                code="arguments",
                help="pass vectors in memory: a pointer to them",
            )
        if not isinstance(arg, (int, float, bool, np.generic, PyVar)):
            raise ArgumentError(
                f"{func}: argument {position} ({name}) must be a number, got {type(arg).__name__}",
                code="arguments",
                help=f"it is declared as {kind}",
            )
        if type(arg) is not PyVar:
            _check_range(func, position, name, kind, arg)
        return pyvar(arg, kind)
    if arg is None or (type(arg) is int and arg == 0):
        return PyPointer(None, 0, kind.elem, kind.scope)
    chains = chains_of(arg)
    if chains is not None:
        return PyDescPointer(tuple(c.copy() for c in chains), kind.elem, kind.scope)  # a run writes to words of its own
    if not isinstance(arg, np.ndarray):
        raise ArgumentError(
            f"{func}: argument {position} ({name}) must be a NumPy array, got {type(arg).__name__}",
            code="arguments",
            help="a null pointer is None",
        )
    elem = kind.elem if kind.elem.is_void else kind.elem.element_of
    what = f"{func}: argument {position} ({name})"
    if not elem.is_void and (text := other_elements(arg, np_dtype(elem), what, str(elem))):
        logging.getLogger("Compass").warning("%s", text)
    data = np.ascontiguousarray(arg).reshape(-1)  # a copy of an array with gaps
    data.flags.writeable = arg.flags.writeable
    return PyPointer(Storage(data.view(np.uint8), f"parameter {name}"), 0, kind.elem, kind.scope)


def _check_range(func: str, position: int, name: str, kind: DataType, arg: Any) -> None:
    """Refuses a number that the parameter's type cannot hold, as a run of the compiled kernel does."""
    if kind.is_bool:
        return
    low, high = kind.range()
    if isinstance(arg, int) or math.isfinite(arg):
        fits = low <= arg <= high and (kind.is_floating or int(arg) == arg)
    else:
        fits = kind.is_floating
    if not fits:
        raise CompassError(
            f"{func}: argument {position} ({name}): {arg!r} is not a value of type {kind}", code="scalar-value"
        )


def call_sub(
    py_func: FunctionType,
    params: Sequence[Param],
    ret_type: DataType | PointerType | None,
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> object:
    """Call a sub-function from a running kernel. Values are passed and returned by value, converted to the annotated
    types; pointers take the parameter's pointee type."""
    func = py_func.__name__
    if len(args) == len(params) and not kwargs:
        pairs = enumerate(zip(params, args), 1)
        values = [sub_argument(func, i, param.name, param.type, arg) for i, (param, arg) in pairs]
        return returned(func, with_kernel_assignments(py_func)(*values), ret_type)
    bound: dict[str, object] = {}
    names = f"its parameters are {', '.join(p.name for p in params)}"
    if len(args) > len(params):
        raise CompassError(
            f"{func} takes at most {len(params)} arguments, got {len(args)}", code="arguments", help=names
        )
    for param, arg in zip(params, args):
        bound[param.name] = arg
    known = {p.name for p in params}
    for key, arg in kwargs.items():
        if key not in known or key in bound:
            what = "is given twice" if key in bound else "is not a parameter"
            raise CompassError(f"{func}: {key} {what}", code="arguments", help=names)
        bound[key] = arg
    values = []
    for position, param in enumerate(params, 1):
        if param.name not in bound and param.required:
            raise CompassError(f"{func}: the argument {param.name} is missing", code="arguments", help=names)
        arg = bound.get(param.name, param.default)
        values.append(sub_argument(func, position, param.name, param.type, arg))
    return returned(func, with_kernel_assignments(py_func)(*values), ret_type)


def sub_argument(func: str, position: int, name: str, kind: DataType | PointerType, arg: object) -> object:
    """One argument of a sub-function call, passed by value."""
    if type(arg) is PyVar and arg.dtype is kind and not PINNED:
        return PyVar(arg.value, kind)
    if isinstance(kind, PointerType):
        if isinstance(arg, PyDescPointer):
            return arg
        if not isinstance(arg, PyPointer):
            raise CompassError(
                f"{func}: argument {position} ({name}) must be a pointer, got {arg!r}",
                code="arguments",
                help="pass a pointer, e.g. p + i for the element p[i]",
            )
        if isinstance(arg, PyBuffer) or arg.dtype is not kind.elem:
            return PyPointer(arg.storage, arg.offset, kind.elem, arg.scope)
        return arg
    if isinstance(arg, PyEvent):
        return arg
    if isinstance(arg, PyPointer) or arg is None:
        raise CompassError(
            f"{func}: argument {position} ({name}) must be {kind}, got {arg!r}",
            code="arguments",
            help="convert it explicitly",
        )
    source = arg.dtype if isinstance(arg, PyVar) else None
    if source is not kind and (kind.is_vector or (source is not None and source.is_vector)):
        raise CompassError(
            f"{func}: argument {position} ({name}) must be {kind}, got {arg!r}",
            code="argument-type",
            help="convert it explicitly",
        )
    return pyvar(arg, kind)


def returned(func: str, value: object, kind: DataType | PointerType | None) -> object:
    """A sub-function's result, converted to its annotation."""
    if type(value) is PyVar and value.dtype is kind and not PINNED:
        return value
    if kind is None or (not isinstance(kind, PointerType) and kind.is_void):
        return None
    if isinstance(kind, PointerType):
        if not isinstance(value, PyPointer):
            raise CompassError(
                f"{func} returns a pointer by its annotation, but returned {value!r}",
                code="return",
                help="change the annotation or the value",
            )
        return value.as_ptr(kind.elem)
    if value is None:
        raise CompassError(f"{func} ends without returning {kind}", code="return", help="add a return statement")
    return value if isinstance(value, PyEvent) else pyvar(value, kind)
