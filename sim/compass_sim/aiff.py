"""The engine's model of the AIFF as a library, for PySim: one start on arrays that stand for device memory."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from compass_core import switches
from compass_core.aiff.rules import assumption_bits
from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.files.cache import Cache
from compass_sim import engine

_COMPILE = ("-fPIC", "-fvisibility=hidden")
_LINK = ("-shared", "-z", "now", "-z", "relro", "-z", "noexecstack")
_MESSAGE = 400
_GENERATIONS = {"X2": 0, "X3P": 1, "X3S": 1}
ALIGNMENT = 256
"""Between arrays on the device, in bytes."""


class _Range(ctypes.Structure):
    _fields_ = (("address", ctypes.c_uint64), ("size", ctypes.c_uint64), ("host", ctypes.c_void_p))


class Area(ctypes.Structure):
    """Device memory that the unit reads or writes: `times` groups, `step` bytes apart, of `count` rows of `width` bytes,
    `stride` apart. `name`: of the register with its address."""

    _fields_ = (
        ("first", ctypes.c_uint64),
        ("stride", ctypes.c_uint64),
        ("step", ctypes.c_uint64),
        ("width", ctypes.c_uint64),
        ("count", ctypes.c_uint32),
        ("times", ctypes.c_uint32),
        ("writes", ctypes.c_bool),
        ("name", ctypes.c_char_p),
    )


_Visitor = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(Area))


class AiffRefused(CompassError, NotImplementedError):
    """The registers ask for what the model does not know."""


def _build(output: Path) -> None:
    sources = sorted(engine.source_folder().glob("aiff*.c"))
    engine.compile_and_link(sources, output, _COMPILE, _LINK)


@cache
def _function() -> Callable[..., object]:
    """`compass_aiff` of the library, which is built into the cache when it is first asked for."""
    library = ctypes.CDLL(str(Cache().made("aiff", engine.source_key(), _build)))
    function = library.compass_aiff
    function.argtypes = (
        ctypes.POINTER(_Range),
        ctypes.c_uint64,
        ctypes.c_uint32,
        ctypes.c_uint32,
        _Visitor,
        ctypes.POINTER(ctypes.c_uint32),
        ctypes.c_char_p,
        ctypes.c_uint64,
    )
    return function


class DeviceMemory:
    """Arrays at device addresses. Each lies apart from the others, so that what leaves one is noticed."""

    def __init__(self) -> None:
        self._next = ALIGNMENT
        self._arrays: dict[int, tuple[int, Array]] = {}

    def place(self, array: Array) -> int:
        """The address of a C-contiguous array, which it keeps. CompassError when there is no room for it."""
        start = array.__array_interface__["data"][0]
        if start not in self._arrays:
            if self._next + array.nbytes > 1 << 32:
                raise CompassError("the arrays of AIFF descriptors do not fit the device's 4 GiB", code="device-memory")
            self._arrays[start] = (self._next, array)
            self._next += (array.nbytes // ALIGNMENT + 2) * ALIGNMENT
        return self._arrays[start][0]

    def arrays(self) -> Iterable[tuple[int, Array]]:
        """All arrays with their addresses, in the order of these."""
        return self._arrays.values()

    def ranges(self) -> Iterable[_Range]:
        """All arrays as the model wants them."""
        for start, (address, array) in self._arrays.items():
            yield _Range(address, array.nbytes, start)


def run(memory: DeviceMemory, generation: str, chains: Sequence[int]) -> None:
    """Starts the AIFF of a generation (`X2`, `X3P`, `X3S`) on the chains at three addresses: control, parameters,
    activations. AiffRefused when the model does not know what they ask for; nothing is written then, unless it depends on
    the data."""
    if text := _call(memory, generation, chains, _Visitor()):
        logging.getLogger("Compass").warning("the results of the AIFF rest on assumptions: %s", text)


def areas(memory: DeviceMemory, generation: str, chains: Sequence[int]) -> list[Area]:
    """What a start would read and write, node by node, descriptors apart. AiffRefused as of `run`."""
    found: list[Area] = []

    def visit(context: object, area: Any) -> bool:
        found.append(Area.from_buffer_copy(area.contents))
        return True

    _call(memory, generation, chains, _Visitor(visit))
    return found


def _call(memory: DeviceMemory, generation: str, chains: Sequence[int], visitor: object) -> str:
    """Runs the model; gives the assumptions that it made use of."""
    ranges = list(memory.ranges())
    message = ctypes.create_string_buffer(_MESSAGE)
    done = _function()(
        (_Range * len(ranges))(*ranges),
        len(ranges),
        _GENERATIONS[generation],
        assumption_bits(switches.AIFF_ASSUME.get()),
        visitor,
        (ctypes.c_uint32 * 3)(*chains),
        message,
        _MESSAGE,
    )
    text = message.value.decode()
    if not done:
        raise AiffRefused(text, code="kernel-unsupported", help="print(aiff) shows what is set")
    return text
