"""One session on the server: the functions that its client may call, and what keeps it within its limits.

It is a process of its own (`server`), with a folder of its own. What it offers is the table `_FUNCTIONS`: names, the types of
arguments, and what is done. Nothing else of the process can be named: of its global functions those that whoever started the
server registered for this.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core import VERSION, files, targets
from compass_core.arrays import Array, base_of
from compass_core.reading.jsontext import Json
from compass_runtime import npu
from compass_runtime.calls import run_loaded
from compass_runtime.compass_module import CompassModule
from compass_runtime.devices import ATTRIBUTES, Device, device, device_api
from compass_runtime.errors import MissingFunction
from compass_runtime.module import Module, unpack
from compass_runtime.ndarray import NDArray, empty
from compass_runtime.packed import PackedFunc, get_global_func, pass_value
from compass_runtime.rpc.access import Token
from compass_runtime.rpc.channel import Channel, Peer
from compass_runtime.rpc.errors import OVER, RPCError, damaged, lost
from compass_runtime.rpc.folder import Folder
from compass_runtime.rpc.limits import MOST_DEVICES, MOST_OBJECTS, Quota
from compass_runtime.rpc.remote import RemoteFunction
from compass_runtime.rpc.wire import PIECE, Buffer, Inline, Kind, Raw, dtype_of, shape_of
from compass_runtime.timing import Plan, measure, time_evaluator

if TYPE_CHECKING:
    from compass_runtime.program import Program
    from compass_runtime.vendor_driver import VendorDriver

_TICK = 0.05
"""Seconds between two looks at the clock and the connection while a call runs."""
_SLACK = 512 << 20
"""Bytes that the process of a session may have besides its tensors, for all else that it keeps."""
_NEEDS: dict[str, str] = {
    "compass.runtime.CompassModule": "",
    "runtime.HostModule": "",
    "compass.runtime.HostLibrary": "llvm",
    "compass.runtime.CudaModule": "cuda",
}
"""Kinds of modules that a session may load, and the right that it takes."""


class _Stopped(BaseException):
    """A call is to end: its time is over, its client has gone or does not want it any more."""


class Service(Peer):
    """Answers the calls of one client until he goes. `offered`: names of global functions that he may call."""

    def __init__(
        self,
        channel: Channel,
        folder: Path,
        quota: Quota,
        token: Token,
        seconds: float,
        offered: frozenset[str],
        driver: VendorDriver | None = None,
    ) -> None:
        """`driver`: what runs programs, in the place of the simulator."""
        super().__init__(channel)
        self.folder = Folder(folder, quota.disk)
        self.quota, self.token, self.offered, self.driver = quota, token, offered, driver
        self._session_end = time.monotonic() + seconds if seconds else float("inf")
        self.session_seconds = seconds
        self._taken: dict[int, tuple[int, int]] = {}
        """By number of a tensor its memory, which views share, and the bytes of that."""
        self._busy = False
        self._call_end = float("inf")
        self._why = ""
        self.note_deadline: Callable[[float], object] = lambda end: None
        """Told when a call has to be over at the latest, and 0 when it is."""
        self._base = _functions(self)

    # -- the life of a session

    def serve(self) -> None:
        """Answers until the client goes, or time is over. RPCError says why it ended, where it was not by itself."""
        signal.signal(signal.SIGALRM, self._tick)
        while True:
            left = self._session_end - time.monotonic()
            if left <= 0 or not self.channel.begins(min(left, self.quota.idle_seconds)):
                self._tell(self._over() if time.monotonic() >= self._session_end else self._idle())
                return
            frame = self.channel.receive()
            if frame.kind == Kind.CANCEL:  # of a call that had ended before
                continue
            if frame.kind != Kind.CALL:
                raise damaged("a message that is no call")
            self.answer(frame)

    def _tell(self, error: RPCError) -> None:
        self._complain(0, error)

    def _over(self) -> RPCError:
        return RPCError(
            f'Your {self.session_seconds:g}s session has expired, try to increase the "session_timeout" value.',
            code=OVER,
        )

    def _idle(self) -> RPCError:
        return RPCError(
            f"nothing was asked for {self.quota.idle_seconds:g} seconds: the session has ended", code="rpc-idle"
        )

    def run(self, function: Callable[..., object], args: list[object], seconds: Json) -> object:
        if self._depth > 1:
            return function(*args)
        limit = self.quota.call_seconds
        if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and seconds > 0:
            limit = min(limit, seconds)
        self._call_end = min(time.monotonic() + limit, self._session_end)
        self.note_deadline(self._call_end)
        try:
            try:
                self._busy = True
                signal.setitimer(signal.ITIMER_REAL, _TICK, _TICK)
                return function(*args)
            finally:
                self._busy = False
                signal.setitimer(signal.ITIMER_REAL, 0)
                self.note_deadline(0)
        except _Stopped:
            self._busy = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.note_deadline(0)
            raise self._stopped(limit) from None

    def _stopped(self, limit: float) -> RPCError:
        if self._why == "gone":
            return lost(self.channel.where, "the client went while its call ran")
        if self._why == "cancelled":
            return RPCError("the call was cancelled", code="rpc-cancelled")
        if time.monotonic() >= self._session_end:
            return self._over()
        return RPCError(f"the call took longer than {limit:g} seconds and was stopped", code="rpc-deadline")

    def _tick(self, *_: object) -> None:
        """Looks at the clock and the connection while a call runs."""
        if not self._busy or self.channel.sending:
            return
        if time.monotonic() >= self._call_end:
            self._stop("late")
        if self.channel.peeked():
            self._stop("cancelled" if self.channel.is_ahead else "gone")

    def _stop(self, why: str) -> None:
        if why == "gone" and self.driver is not None:  # no driver stops a run; with the process it goes
            os._exit(0)
        self._busy, self._why = False, why
        raise _Stopped

    def time_left(self) -> float:
        """Seconds that the call which runs may still take."""
        return self._call_end - time.monotonic()

    def cancelled(self) -> None:
        self._stop("cancelled")

    def call(
        self, function: object, args: Sequence[object], seconds: float | None = None, grace: float | None = None
    ) -> object:
        """Calls a function of the client, within the time of the call that it belongs to."""
        busy, self._busy = self._busy, False
        try:
            return super().call(function, args, max(self._call_end - time.monotonic(), 0.001), 0)
        finally:
            self._busy = busy

    # -- objects

    def keep(self, value: object) -> int:
        if len(self._objects) >= MOST_OBJECTS:
            raise RPCError(f"a session may keep {MOST_OBJECTS} objects", code="rpc-quota")
        number = super().keep(value)
        if isinstance(value, NDArray):
            memory = base_of(np.asarray(value))
            self._taken[number] = id(memory), memory.nbytes
        return number

    def forget(self, numbers: object) -> None:
        super().forget(numbers)
        for number in numbers if isinstance(numbers, list) else ():
            self._taken.pop(number, None) if type(number) is int else None

    def room(self, nbytes: int) -> None:
        """RPCError where a tensor of so many bytes is more than the session may keep."""
        held = sum(dict(self._taken.values()).values())
        if held + nbytes > self.quota.memory:
            raise RPCError(
                f"the tensors of a session may have {self.quota.memory} bytes; with {nbytes} more they would have "
                f"{held + nbytes}",
                code="rpc-quota",
            )

    def describe(self, value: object) -> dict[str, Json]:
        if isinstance(value, RemoteFunction):
            return {"$": "yours", "id": value.number}
        if isinstance(value, np.ndarray):
            value = NDArray(value)
        if isinstance(value, NDArray):
            self.room(value.nbytes)
            about: dict[str, Json] = {"kind": "tensor", "shape": list(value.shape), "dtype": value.dtype}
            about["device"] = [value.device.device_type, value.device.index]
        elif isinstance(value, Module):
            about = {"kind": "module", "type": value.type_key, "entry": value.entry_name}
        elif isinstance(value, PackedFunc) or callable(value):
            about = {"kind": "function", "name": str(getattr(value, "name", ""))[:200]}
        elif isinstance(value, Device):
            return {"$": "device", "type": value.device_type, "index": value.index}
        elif getattr(value, "packed_object", False):
            about = {"kind": "object", "type": type(value).__name__}
        else:
            raise TypeError(f"a {type(value).__name__} cannot be passed to the other side")
        return {"$": "mine", "id": self.keep(value), **about}

    def object_of(self, kind: str, given: dict[str, Json]) -> object:
        if kind == "yours":
            return self.own(given.get("id"))
        if kind == "mine" and given.get("kind") == "function":
            return RemoteFunction(self, _number(given.get("id")), str(given.get("name", ""))[:200])
        if kind == "device":
            return _device(given.get("type"), given.get("index"))
        raise damaged(f"a value of the kind {kind!r:.40}")

    def function(self, name: object) -> Callable[..., object]:
        if isinstance(name, str):
            found = self._base.get(name) or self.named(name)
            if found is None:
                raise MissingFunction(f"the server offers no function '{name:.200}'", code="no-function")
            return found
        target = self.own(name)
        if not callable(target):
            raise damaged("a call of what is no function")
        found = target.entry_func if isinstance(target, Module) else target
        return found

    def named(self, name: str) -> Callable[..., object] | None:
        """A function that the client may call by name: a global one, or one on the session's files."""
        if name.startswith(NAMED):
            return self._base.get(name)
        return get_global_func(name, allow_missing=True) if name in self.offered else None


def _number(given: object) -> int:
    if type(given) is not int or not 0 <= given < 1 << 63:
        raise damaged("a number that is none")
    return given


def _device(kind: object, index: object) -> Device:
    return device(_number(kind), _number(index))


# -- what is offered

Declared = tuple[tuple[type | UnionType, ...], Callable[..., object]]
_BYTES = bytes | bytearray | memoryview


def _functions(session: Service) -> dict[str, Callable[..., object]]:
    """The functions that every session offers, by name. Arguments are held against their types before a call."""

    def bound(name: str, types: tuple[type | UnionType, ...], body: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object) -> object:
            if len(args) < len(types) or any(not isinstance(a, t) for a, t in zip(args, types)):
                wanted = ", ".join(getattr(t, "__name__", str(t)) for t in types)
                raise RPCError(
                    f"{name} takes ({wanted}), not ({', '.join(type(a).__name__ for a in args)})", code="rpc-call"
                )
            return body(session, *args)

        return call

    return {name: bound(name, types, body) for name, (types, body) in _FUNCTIONS.items()}


def _info(session: Service) -> dict[str, object]:
    from compass_core.hostcc import host

    return {
        "software": f"compassc {VERSION}",
        "host": host.triple(),
        "features": host.current().features,
        "targets": list(targets.names()),
        "device": "simulator" if session.driver is None else session.driver.name,
        "extents": True,
        "rights": sorted(session.token.rights),
        "memory": session.quota.memory,
        "disk": session.quota.disk,
        "call_seconds": session.quota.call_seconds,
    }


def _find(session: Service, name: str) -> Callable[..., object] | None:
    return session.named(name)


def _write(session: Service, name: str, offset: int, data: Buffer) -> None:
    session.folder.write(name, offset, data)


def _read(session: Service, name: str, offset: int, size: int) -> Raw:
    if not 0 <= size <= PIECE or offset < 0:
        raise RPCError(f"a piece of a file has at most {PIECE} bytes", code="rpc-call")
    return Raw(session.folder.read(name, offset, size))


def _load(session: Service, name: str) -> Module:
    """The module in a file of the session: an aipu.bin, or a module file. RPCError for kinds that the token does not allow."""
    from compass_runtime.host_module import HostLibrary

    path = session.folder.path(name)
    if path.is_symlink() or not path.is_file():
        raise RPCError(f"there is no file '{name:.200}' in this session", code="rpc-file", help="upload it first")
    data = files.read(path)
    if data[:4] == b"\x7fELF":
        program = CompassModule(data, program=_by_driver(session, data))
        assert program.program is not None  # what is no aipu.bin is refused now
        return program
    module: Module = unpack(data, name)
    for part in module.tree():
        right = _NEEDS.get(part.type_key)
        if right is None or (right and right not in session.token.rights):
            raise RPCError(
                f"'{name:.200}' has a module of kind {part.type_key}, which this token does not allow",
                code="rpc-right",
                help=f"whoever runs the server can add the right '{right}' to the token" if right else "",
            )
        if isinstance(part, HostLibrary):
            part.trust()
        if isinstance(part, CompassModule) and session.driver is not None:
            part.program = session.driver.program(part.content, name, session.time_left)
    return module


def _by_driver(session: Service, data: bytes) -> Program | None:
    """The program on the driver that this server was started with; None where it is the simulator's."""
    return None if session.driver is None else session.driver.program(data, "aipu.bin", session.time_left)


def _module_function(session: Service, module: Module, name: str, imports: bool) -> PackedFunc | None:
    return module.get_function(name, imports) if module.implements_function(name, imports) else None


def _module_time(
    session: Service, module: Module, name: str, dev: Device, plan: Mapping[str, Any], *args: object
) -> list[float]:
    options = dict(plan)
    flush, before = options.pop("cache_flush_bytes", 0), options.pop("f_preproc", "")
    if not isinstance(flush, int) or not 0 <= flush <= 1 << 30:
        raise RPCError("at most 1 GiB of caches can be flushed", code="rpc-call")
    if before and session.named(before) is None:
        raise MissingFunction(f"the server offers no function '{before!s:.200}'", code="no-function")
    measured = time_evaluator(module.get_function(name, True), dev, Plan(**options), flush, before)(*args)
    return list(measured.results)


def _tensor(session: Service, shape: list[object], dtype: str, kind: int, index: int) -> NDArray:
    import math

    dims, wanted = shape_of(shape), dtype_of(dtype)
    session.room(math.prod(dims) * wanted.itemsize)
    return empty(dims, wanted, _device(kind, index))


def _flat(tensor: NDArray) -> Array:
    array = np.asarray(tensor)
    if not array.flags.c_contiguous:
        raise RPCError("the tensor is not contiguous", code="rpc-call")
    return array.reshape(-1).view(np.uint8)


def _tensor_read(session: Service, tensor: NDArray, offset: int, size: int) -> Raw:
    flat = _flat(tensor)
    if not 0 <= offset <= offset + size <= len(flat) or size > PIECE:
        raise RPCError(f"there are no {size} bytes at {offset} in {len(flat)}", code="rpc-call")
    return Raw(flat[offset : offset + size].data)


def _tensor_write(session: Service, tensor: NDArray, offset: int, data: Buffer) -> None:
    flat = _flat(tensor)
    if not 0 <= offset <= offset + len(data) <= len(flat):
        raise RPCError(f"there are no {len(data)} bytes at {offset} in {len(flat)}", code="rpc-call")
    flat[offset : offset + len(data)] = np.frombuffer(data, np.uint8)


def _tensor_view(session: Service, tensor: NDArray, shape: list[object], dtype: str, offset: int) -> NDArray:
    return tensor._create_view(shape_of(shape), dtype_of(dtype), offset)


def _attribute(session: Service, dev: Device, name: str) -> object:
    return pass_value(getattr(dev, name), name, 0) if name in ATTRIBUTES else None


def _program_call(
    session: Service,
    module: Module,
    args: list[object],
    outputs: list[int],
    timeout: float | None = None,
    record: bool = False,
) -> list[object]:
    """One run with an argument per parameter: seconds, what was printed, the content of some of the arrays after it, and
    what the engine recorded, if that is asked for."""
    arrays = [np.asarray(a) if isinstance(a, NDArray) else a for a in args]
    caller = _program(module).caller
    with caller.loaded(arrays) as job:
        result = run_loaded(job, timeout, record=record)
        caller.store(job, arrays)
    recorded = NDArray(np.frombuffer(result.recorded, np.uint8)) if result.recorded else None
    return [result.seconds, result.printf, [_content(arrays[i], args[i]) for i in outputs], recorded]


def _content(array: object, given: object) -> Inline | None:
    if isinstance(given, NDArray):
        return None
    if not isinstance(array, np.ndarray):
        raise RPCError(f"an output is an array, not {type(array).__name__}", code="rpc-call")
    return Inline(array)


def _program_run(
    session: Service, module: Module, inputs: list[object], outputs: list[object], options: dict[str, Any]
) -> list[object]:
    """Runs with tensors in their order, None for what is not given: its seconds, what was printed, and the outputs."""
    program = _program(module)
    infos = {info.name: info for info in (*program.inputs, *program.outputs)}
    if len(inputs) != len(program.inputs) or len(outputs) != len(program.outputs):
        raise RPCError(
            f"the program has {len(program.inputs)} inputs and {len(program.outputs)} outputs", code="invalid-tensor-id"
        )
    arrays = {n: np.asarray(a) for n, a in zip(infos, (*inputs, *outputs), strict=True) if a is not None}
    shapes = {name: shape_of(shape) for name, shape in options.get("shapes", {}).items()}
    sizes = {name: infos[name].elements_of(array) for name, array in arrays.items()}
    job = program.create_job(shapes, options.get("values", {}), sizes)
    given = {slot.info.name: arrays[slot.info.name] for slot in job.inputs if slot.info.name in arrays}
    initial = {slot.info.name: arrays[slot.info.name] for slot in job.outputs if slot.info.name in arrays}
    room = PIECE
    found: list[object] = []
    for array in job.run(given, options.get("timeout"), initial).values():
        room -= array.nbytes
        found.append(Inline(array) if room >= 0 else NDArray(array))
    return [job.result.seconds, job.result.printf, found]


def _program_time(
    session: Service, module: Module, args: list[object], outputs: list[int], plan: dict[str, Any]
) -> list[object]:
    """Runs of one job, see `Executor.benchmark`: seconds of groups, those that the device was busy, and arrays as above."""
    arrays = [np.asarray(a) if isinstance(a, NDArray) else a for a in args]
    caller = _program(module).caller
    with caller.loaded(arrays) as job:
        found = measure(lambda: run_loaded(job).seconds, Plan(**plan))
        caller.store(job, arrays)
    busy = found.device.results if found.device is not None else ()
    return [list(found.results), list(busy), [_content(arrays[i], args[i]) for i in outputs]]


def _program(module: Module) -> Program:
    if not isinstance(module, CompassModule):
        raise RPCError(f"a module of kind {module.type_key} is no program of an NPU", code="rpc-call")
    return module.program


def _whole(session: Service, name: str) -> bytearray:
    """A file in one piece, where a message holds it."""
    found = session.folder.read(name, 0, PIECE + 1)
    if len(found) > PIECE:
        raise RPCError(
            f"'{name:.200}' does not fit into a message", code="rpc-file", help="session.download(name) gets pieces"
        )
    return bytearray(found)


def _linked(session: Service, name: str) -> bytearray:
    if not name.endswith(".so"):
        raise RPCError(f"Do not know how to link {name:.200}", code="rpc-call", help="there is no linker here")
    return _whole(session, name)


NAMED = "tvm.rpc.server."
"""The framework's functions on a session's files, which programs get by `get_function`."""
_FUNCTIONS: dict[str, Declared] = {
    "server.info": ((), _info),
    "server.function": ((str,), _find),
    "server.nothing": ((), lambda session: None),
    "server.wait": ((int | float,), lambda session, seconds: time.sleep(seconds)),
    "file.write": ((str, int, _BYTES), _write),
    "file.read": ((str, int, int), _read),
    "file.remove": ((str,), lambda session, name: session.folder.remove(name)),
    "file.names": ((str,), lambda session, name: session.folder.names(name)),
    "file.files": ((str,), lambda session, name: session.folder.files(name)),
    "file.path": ((str,), lambda session, name: str(session.folder.path(name))),
    f"{NAMED}upload": ((str, _BYTES), lambda session, name, data: session.folder.write(name, 0, data)),
    f"{NAMED}download": ((str,), _whole),
    f"{NAMED}remove": ((str,), lambda session, name: session.folder.remove(name)),
    f"{NAMED}listdir": ((str,), lambda session, name: ",".join(session.folder.names(name))),
    f"{NAMED}workpath": ((str,), lambda session, name: str(session.folder.path(name))),
    f"{NAMED}load_module": ((str,), _load),
    f"{NAMED}download_linked_module": ((str,), _linked),
    "module.load": ((str,), _load),
    "module.function": ((Module, str, bool), _module_function),
    "module.imports": ((Module,), lambda session, module: module.imported_modules),
    "module.import": ((Module, Module), lambda session, module, other: module.import_module(other)),
    "module.source": ((Module, str), lambda session, module, format: module.get_source(format)),
    "module.time": ((Module, str, Device, dict), _module_time),
    "tensor.empty": ((list, str, int, int), _tensor),
    "tensor.read": ((NDArray, int, int), _tensor_read),
    "tensor.write": ((NDArray, int, _BYTES), _tensor_write),
    "tensor.copy": ((NDArray, NDArray), lambda session, source, to: source.copyto(to) and None),
    "tensor.view": ((NDArray, list, str, int), _tensor_view),
    "device.attribute": ((Device, str), _attribute),
    "device.sync": ((Device,), lambda session, dev: device_api(dev).stream_sync(dev)),
    "program.call": ((Module, list, list), _program_call),
    "program.time": ((Module, list, list, dict), _program_time),
    "program.run": ((Module, list, list, dict), _program_run),
}


def confine(quota: Quota) -> None:
    """What a session may take of the machine, for this process and those it starts."""
    import os
    import resource

    npu.restrict(MOST_DEVICES, quota.memory)
    os.environ["COMPASS_TENSOR_MEMORY"] = str(max(1, quota.memory >> 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open("/proc/self/statm", encoding="ascii") as numbers:
        data = int(numbers.read().split()[5]) * resource.getpagesize()
    most = data + quota.memory + _SLACK
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
