"""Programs on a real NPU: the vendor's driver library by ctypes, or another one with its functions.

A driver runs graphs whose sizes are in the file. So a job writes its sizes into a copy of the file, has it loaded, and keeps its
tensors in memory of the host, from where they are copied to the driver before a run and back after it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from compass_core.aipubin import AipuBin, read
from compass_core.aipubin.dtypes import scalar_bits
from compass_core.aipubin.fields import replace
from compass_core.aipubin.writer import write
from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_runtime.driver import DriverError, TensorType
from compass_runtime.forks import renew_locks
from compass_runtime.job import Job, Residency, Slot
from compass_runtime.program import Program, TensorInfo
from compass_runtime.status import Status

if TYPE_CHECKING:
    from compass_sim import RunResult

ROOM = 4096
"""Bytes behind a tensor whose size was left open: the driver's memory is of whole pages."""
MOST_PRINTED = 4 << 20
"""Bytes of what a run prints."""
_CUT = "\n... (what else was printed has no room)\n"
_LOOK_SECONDS = 0.02
_WORD, _LONG, _INT, _TEXT, _ANY = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p
_FUNCTIONS: dict[str, tuple[object, ...]] = {
    "init_context": (ctypes.POINTER(_ANY),),
    "get_error_message": (_ANY, _INT, ctypes.POINTER(_TEXT)),
    "load_graph_helper": (_ANY, _TEXT, _WORD, ctypes.POINTER(_LONG), _ANY),
    "unload_graph": (_ANY, _LONG),
    "create_job": (_ANY, _LONG, ctypes.POINTER(_LONG), _ANY),
    "finish_job": (_ANY, _LONG, _INT),
    "get_tensor_descriptor": (_ANY, _LONG, _INT, _WORD, _ANY),
    "load_tensor": (_ANY, _LONG, _WORD, _ANY),
    "load_output_tensor": (_ANY, _LONG, _WORD, _ANY),
    "get_tensor": (_ANY, _LONG, _INT, _WORD, _ANY),
    "rewrite_rodata": (_ANY, _LONG, _WORD, _WORD),
}
"""The driver's functions that are used, and the types of their arguments."""
_CONFIG = ctypes.c_char * 128
"""Room for any of the configurations, all zero: what the driver does by itself."""


class _Descriptor(ctypes.Structure):
    _fields_ = (("id", _WORD), ("size", _WORD), ("scale", ctypes.c_float), ("zero_point", _INT), ("data_type", _INT))


class VendorDriver:
    """A driver's library, by the name that the loader finds it by, or its path. CompassError where it cannot be loaded, or has not
    the functions. The device is opened when the first program needs it."""

    def __init__(self, library: str) -> None:
        try:
            self._library = ctypes.CDLL(library)
            self._calls = {name: getattr(self._library, f"aipu_{name}") for name in _FUNCTIONS}
        except (OSError, AttributeError) as error:
            raise CompassError(
                f"the driver's library cannot be used: {error}",
                code="rpc-driver",
                help="name the vendor's libaipudrv.so, by a path or where the loader finds it (LD_LIBRARY_PATH)",
            ) from None
        for name, types in _FUNCTIONS.items():
            self._calls[name].argtypes = types
        self.name = library
        self._detail = getattr(self._library, "compass_error_detail", None)
        if self._detail is not None:
            self._detail.restype = _TEXT
        self._context: ctypes.c_void_p | None = None

    @property
    def context(self) -> ctypes.c_void_p:
        """The open device."""
        if self._context is None:
            made = _ANY()
            self._check(self._calls["init_context"](ctypes.byref(made)), None)
            self._context = made
        return self._context

    def do(self, name: str, *args: object) -> None:
        """Calls a function. DriverError with the driver's words where it fails."""
        context = self.context
        self._check(self._calls[name](context, *args), context)

    def _check(self, code: int, context: ctypes.c_void_p | None) -> None:
        if code == 0:
            return
        text = self._detail() if self._detail is not None else None
        if not text:
            found = _TEXT()
            self._calls["get_error_message"](context, code, ctypes.byref(found))
            text = found.value or b""
        known = {int(status): status for status in Status}
        raise DriverError(known.get(code, Status.UNKNOWN_ERROR), text.decode("utf-8", "replace"))

    def program(self, content: bytes, where: str = "aipu.bin", time_left: Callable[[], float] | None = None) -> Program:
        """An aipu.bin, to be run by this driver; `time_left`: seconds that a run may take at most."""
        try:
            return VendorProgram(self, read(content), where, time_left or (lambda: math.inf))
        except CompassError as error:
            raise CompassError(f"{where}: {error.message}", code=error.code, help=error.help) from error


class VendorProgram(Program):
    """A program whose jobs a driver runs. Its code is the device's: nothing of it is looked at."""

    def __init__(self, driver: VendorDriver, content: AipuBin, where: str, time_left: Callable[[], float]) -> None:
        self.driver, self.time_left = driver, time_left
        super().__init__(content, where)

    def read_code(self) -> None:
        return None

    def make_job(
        self,
        shapes: Mapping[str, tuple[int, ...]],
        values: Mapping[str, float],
        nulls: Collection[str] = (),
        room: Mapping[str, int] | None = None,
    ) -> Job:
        return VendorJob(self, shapes, values, nulls, room or {})


class _HostMemory:
    """Memory of the host, in the place of a device's."""

    alive, ended = True, False

    def __init__(self, size: int) -> None:
        import numpy as np

        self.memory = np.zeros(size, np.uint8)
        self.residencies: weakref.WeakSet[Residency] = weakref.WeakSet()


class VendorJob(Job):
    """A graph that the driver has loaded, with sizes, and its job."""

    def __init__(
        self,
        program: VendorProgram,
        shapes: Mapping[str, tuple[int, ...]],
        values: Mapping[str, float],
        nulls: Collection[str],
        room: Mapping[str, int],
    ) -> None:
        self.program, self._vendor = program, program
        self.lock = threading.Lock()
        renew_locks(self, "lock")
        self.refill = None
        self._values = dict(values)
        self._nulls = nulls
        infos = [info for info in (*program.inputs, *program.outputs)]
        sizes = {info.name: math.prod(shapes[info.name]) * info.dtype.size for info in infos}
        rooms = {info.name: max(sizes[info.name], room.get(info.name, 0) * info.dtype.size) for info in infos}
        self._content = write(_sized(program.content, infos, sizes, rooms))
        memory = _HostMemory(sum(sizes.values()))
        self.residency = Residency(memory, set())  # type: ignore[arg-type]
        self.slots, at = {}, 0
        for info in infos:
            self.slots[info.name] = Slot(info, shapes[info.name], self.residency, at, sizes[info.name])
            at += sizes[info.name]
        self.inputs = [self.slots[info.name] for info in program.inputs]
        self.outputs = [self.slots[info.name] for info in program.outputs]
        self._begin()

    def _begin(self) -> None:
        """Has the driver load the graph, and make a job of it."""
        driver, graph = self._vendor.driver, _LONG()
        self.job, self._failed = _LONG(), False
        driver.do("load_graph_helper", self._content, len(self._content), ctypes.byref(graph), _CONFIG())
        self._unload = weakref.finalize(self, driver.do, "unload_graph", graph)
        self._unload.atexit = False
        driver.do("create_job", graph, ctypes.byref(self.job), _CONFIG())
        self._check_sizes()
        for name, value in self._values.items():
            self._set(name, value)
        for name in self._nulls:
            self._write(next(i for i, p in enumerate(self.program.params) if p.name == name), 0)

    def close(self) -> None:
        self._unload()

    def _tensors(self) -> Iterator[tuple[TensorType, int, Slot]]:
        """Kind, number and slot of the tensors that are there."""
        for kind, slots in ((TensorType.INPUT, self.inputs), (TensorType.OUTPUT, self.outputs)):
            for slot in slots:
                if slot.info.name not in self._nulls and slot.nbytes:
                    yield kind, slot.info.index, slot

    def _check_sizes(self) -> None:
        """The driver copies as many bytes as it says: they must be ours."""
        for kind, number, slot in self._tensors():
            found = _Descriptor()
            self._vendor.driver.do("get_tensor_descriptor", self.job, kind, number, ctypes.byref(found))
            if found.size != slot.nbytes:
                raise CompassError(
                    f"{slot.info.role} '{slot.info.name}' has {slot.nbytes} bytes, and the driver says {found.size}",
                    code="tensor-size",
                )

    def _write(self, position: int, word: int) -> None:
        at = self.program.content.subgraphs[0].params_offset + 4 * position
        self._vendor.driver.do("rewrite_rodata", self.job, at, word & 0xFFFFFFFF)

    def _set(self, name: str, value: float) -> None:
        position, dtype = self.program.scalars[name]
        self._write(position, scalar_bits(dtype, value))

    def set_values(self, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            if self._values.get(name) != value:
                self._set(name, value)
                self._values[name] = value

    def set_constant(self, name: str, array: Array) -> None:
        """A constant may be given again, as it was built; CompassError for another content."""
        content, position = self.program.content, next(i for i, p in enumerate(self.program.params) if p.name == name)
        at = content.subgraphs[0].params_offset + 4 * position
        statics = [section for bss in content.features.bss for section in bss.statics]
        found = next(s for s in statics if any(at in sub.references for sub in s.subs))
        if content.weights[found.src_offset : found.src_offset + found.size] != array.tobytes():
            raise CompassError(
                f"constant '{name}' is not what the kernel was built with, and drivers keep constants as they are",
                code="tensor-size",
                help="build the kernel again with this constant",
            )

    def rewrite_parameter(self, offset: int, value: int) -> None:
        self._vendor.driver.do("rewrite_rodata", self.job, offset, value & 0xFFFFFFFF)

    def revive(self) -> bool:
        """Makes the job anew after a fault, of which nobody knows what it has left."""
        if self._failed:
            self._unload()
            self._begin()
            return True
        return False

    def execute(
        self,
        timeout: float | None = None,
        seed: int = 0,
        record: bool = False,
        after: object = None,
        singly: bool = False,
    ) -> RunResult:
        """Runs on what the slots hold. Orders, records and parts of a run are the simulator's alone: CompassError."""
        from compass_sim import RunResult

        if seed or record or after is not None:
            raise CompassError("a driver runs a program as a whole, and records nothing", code="rpc-driver")
        driver = self._vendor.driver
        loads = {TensorType.INPUT: "load_tensor", TensorType.OUTPUT: "load_output_tensor"}
        for kind, number, slot in self._tensors():
            driver.do(loads[kind], self.job, number, slot.memory.ctypes.data)
        limit = min(self.program.time_limit if timeout is None else timeout, self._vendor.time_left())
        milliseconds = int(min(max(limit, 0.001) * 1000, 2e9)) + 1
        self._failed = True
        try:
            with _printed() as printed:
                seconds = _in_thread(lambda: driver.do("finish_job", self.job, milliseconds))
        except DriverError as error:
            if error.status not in (Status.JOB_TIMEOUT, Status.TIMEOUT):
                raise
            if self._vendor.time_left() <= 0:
                time.sleep(1)  # whose clock it was says so
            raise CompassError(error.message, code="kernel-timeout") from None
        self._failed = False
        for kind, number, slot in self._tensors():
            if kind == TensorType.OUTPUT:
                driver.do("get_tensor", self.job, kind, number, slot.memory.ctypes.data)
        return RunResult(seconds, printed[0])


def _sized(
    content: AipuBin, infos: Sequence[TensorInfo], sizes: Mapping[str, int], rooms: Mapping[str, int]
) -> AipuBin:
    """The content with sizes for the tensors whose size was left open, and memory for what kernels may touch behind them."""
    wanted = {info.place[0]: info for info in infos if not info.place[1].size and sizes[info.name]}
    number, parts = 0, []
    for bss in content.features.bss:
        reuses = []
        for section in bss.reuses:
            if (info := wanted.get(number)) is not None:
                size = sizes[info.name]
                subs = tuple(replace(s, size=size) if s == info.place[1] else s for s in section.subs)
                section = replace(section, size=-(-(rooms[info.name] + ROOM) // ROOM) * ROOM, subs=subs)
            reuses.append(section)
            number += 1
        parts.append(replace(bss, reuses=tuple(reuses)))
    return replace(content, features=replace(content.features, bss=tuple(parts)))


def _in_thread(run: Callable[[], None]) -> float:
    """Runs a function of the driver, and gives its seconds; this thread sees signals meanwhile. What a signal raises is raised when
    the run has ended, for nothing stops it."""
    raised: list[BaseException] = []
    seconds = 0.0
    done = threading.Event()

    def body() -> None:
        nonlocal seconds
        start = time.perf_counter()
        try:
            run()
        except BaseException as error:  # noqa: BLE001 (raised below)
            raised.append(error)
        seconds = time.perf_counter() - start
        done.set()

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    try:
        while not done.wait(_LOOK_SECONDS):
            pass
    finally:
        thread.join()
    if raised:
        raise raised[0]
    return seconds


@contextlib.contextmanager
def _printed() -> Iterator[list[str]]:
    """What goes to stdout of the process, where drivers write what kernels print. It goes to a piece of memory that does not grow: what
    has no room there is lost, and said to be."""
    found: list[str] = []
    kept, file = os.dup(1), os.memfd_create("stdout", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(file, MOST_PRINTED)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    os.dup2(file, 1)
    try:
        yield found
    finally:
        ctypes.CDLL(None).fflush(None)  # of the C library's streams: the driver writes to one
        os.dup2(kept, 1)
        size = os.lseek(file, 0, os.SEEK_CUR)
        found.append(os.pread(file, size, 0).decode("utf-8", "replace") + (_CUT if size >= MOST_PRINTED else ""))
        os.close(kept)
        os.close(file)
