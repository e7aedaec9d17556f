"""Packed functions that kernels of the host call: what the code hands over, as arrays and numbers of Python."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from math import prod
from typing import TypedDict, cast

import numpy as np

from compass_runtime.ndarray import NDArray
from compass_runtime.packed import get_global_func
from compass_runtime.program import numpy_dtype

_Function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_long))


class _Argument(TypedDict, total=False):
    """What the code hands over for one argument."""

    plain: object
    handle: str
    array: str
    ndim: int
    number: str


class Callbacks:
    """The packed functions of one library, by number. `signatures`: `[name, arguments]` as JSON for each; an argument is
    `{"array": dtype, "ndim": n}`, `{"handle": dtype}` (`c_void_p`), `{"number": dtype}` or `{"plain": value}`. ValueError and its like for others."""

    def __init__(self, signatures: Sequence[str]) -> None:
        self._signatures: list[tuple[str, list[_Argument]]] = []
        for text in signatures:
            name, arguments = json.loads(text)
            self._signatures.append((str(name), [cast(_Argument, dict(argument)) for argument in arguments]))
        self._failed: BaseException | None = None
        self._function = _Function(self._called)

    def adopt(self, library: ctypes.CDLL) -> None:
        """Has the code of a library call these."""
        ctypes.c_void_p.in_dll(library, "compass_packed").value = ctypes.cast(self._function, ctypes.c_void_p).value

    def finish(self) -> None:
        """Raises what the first function raised that did, since the last time."""
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def _called(self, number: int, values: Sequence[int | None], sizes: Sequence[int]) -> int:
        if self._failed is not None:
            return 1
        try:
            name, arguments = self._signatures[number]
            function = get_global_func(name)
            assert function is not None
            function(*self._arguments(arguments, values, sizes))
        except BaseException as error:  # noqa: BLE001 - C is in between: it is raised when that has returned
            self._failed = error
            return 1
        return 0

    @staticmethod
    def _arguments(described: list[_Argument], values: Sequence[int | None], sizes: Sequence[int]) -> list[object]:
        made, value, size = list[object](), 0, 0
        for one in described:
            if "plain" in one:
                made.append(one["plain"])
                continue
            if "handle" in one:
                made.append(ctypes.c_void_p(values[value]))
                value += 1
                continue
            shape = tuple(sizes[size : size + one["ndim"]]) if "array" in one else ()
            kind = numpy_dtype(str(one["array"] if "array" in one else one["number"]))
            memory = (ctypes.c_char * (kind.itemsize * prod(shape))).from_address(values[value] or 0)
            array = np.ndarray(shape, kind, memoryview(memory))
            made.append(NDArray(array) if "array" in one else array[()].item())
            value, size = value + 1, size + len(shape)
        return made
