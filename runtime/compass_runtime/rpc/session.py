"""The client's side of a session."""

from __future__ import annotations

import itertools
import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, final

import numpy as np

from compass_core import files
from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.reading.jsontext import Json
from compass_runtime.devices import KINDS, Device, device
from compass_runtime.errors import MissingFunction, RuntimeTypeError, RuntimeValueError
from compass_runtime.module import Module
from compass_runtime.ndarray import NDArray
from compass_runtime.rpc.channel import Channel, Peer
from compass_runtime.rpc.errors import RPCError, RPCSessionTimeoutError, damaged
from compass_runtime.rpc.remote import RemoteArray, RemoteDevice, RemoteFunction, RemoteModule
from compass_runtime.rpc.wire import PIECE, Buffer, Inline, Kind, Raw, dtype_of, packed, shape_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

T = TypeVar("T")
CALL_SECONDS = 600.0
GRACE_SECONDS = 10.0
"""So much longer than a call may take its answer is waited for."""
_CANCEL_SECONDS = 2.0
_numbers = itertools.count()


@final
class Session(Peer):
    """A session on a server: files, modules, arrays and functions there.

    Threads may share it; one call runs at a time. What it holds lives as long as it does; with the last object of the session
    the connection ends. `number` tells the sessions of this process apart, `info` is what the server says of itself.
    """

    def __init__(
        self,
        channel: Channel,
        welcome: Mapping[str, object],
        seconds: float = 0,
        call_seconds: float = CALL_SECONDS,
        log: bool = False,
        and_then: Callable[[], object] = lambda: None,
    ) -> None:
        """`and_then` is called when the session has ended."""
        super().__init__(channel)
        self.number = next(_numbers)
        self.call_seconds = call_seconds
        self._log = log
        self._seconds = seconds
        self._began = time.monotonic()
        self._lock = threading.RLock()
        self._sending = threading.Lock()
        self._current = 0
        self._info: dict[str, Json] | None = None
        self._end = weakref.finalize(self, _end, channel, and_then)

    # -- calls

    def do(self, name: str | int, *args: object) -> object:
        """The result of a function of the server, by its name there."""
        return self.call(name, args, self.call_seconds, GRACE_SECONDS)

    def asked(self, kind: type[T], name: str, *args: object) -> T:
        """The result of a function that gives values of a kind. RPCError where the server gives another one."""
        found = self.do(name, *args)
        if not isinstance(found, kind):
            raise damaged(f"{name} gave a {type(found).__name__}, which is no {kind.__name__}")
        return found

    def call(
        self, function: object, args: Sequence[object], seconds: float | None = None, grace: float | None = None
    ) -> object:
        if self._log:
            logging.getLogger("RPCSession").info("call %s of %s", function, self.channel.where)
        with self._lock:
            try:
                return super().call(
                    function, args, self.call_seconds if seconds is None else seconds, grace or GRACE_SECONDS
                )
            except KeyboardInterrupt:
                self._interrupted()
                raise
            except RPCSessionTimeoutError:
                self.close()
                raise
            except RPCError as error:
                if error.code == "rpc-idle":
                    self.close()
                if error.code == "rpc-lost" and self._seconds and time.monotonic() - self._began >= self._seconds:
                    raise RPCSessionTimeoutError(
                        f'Your {self._seconds:g}s session has expired, try to increase the "session_timeout" value.',
                        code="session-over",
                    ) from None
                raise

    def cancel(self) -> None:
        """Ends the call that runs, from another thread: it fails with the code `rpc-cancelled`. The session goes on."""
        with suppress(OSError):
            self.channel.sock.sendall(b"".join(_cancel(self._number)))

    def _interrupted(self) -> None:
        """Cancels the call that Ctrl-C has ended; where the server does not say so in time, the session ends."""
        try:
            self.cancel()
            end = time.monotonic() + _CANCEL_SECONDS
            while True:
                frame = self.channel.receive(max(end - time.monotonic(), 0.001))
                if frame.kind in (Kind.RESULT, Kind.ERROR):
                    return
        except RPCError:
            self.close()

    @property
    def closed(self) -> bool:
        """Whether the connection has ended."""
        return self.channel.is_closed

    def close(self) -> None:
        """Ends the session. What it held on the server is gone."""
        self._end()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session {self.number} on {self.channel.where}>"

    @property
    def info(self) -> dict[str, Json]:
        """What the server is: `software`, `host` (its triple), `targets`, `rights` of the token, limits."""
        if self._info is None:
            self._info = self.asked(dict, "server.info")
        return dict(self._info or {})

    # -- what lives on which side

    def describe(self, value: object) -> dict[str, Json]:
        if isinstance(value, (RemoteArray, RemoteModule, RemoteFunction)):
            owner = value.peer if isinstance(value, RemoteFunction) else value.session
            if owner is not self:
                raise RuntimeValueError("the object is of another session", code="rpc-other-session")
            return {"$": "yours", "id": value.number}
        if isinstance(value, RemoteDevice):
            if value.session is not self:
                raise RuntimeValueError(
                    "Can not pass in device with a different remote session", code="rpc-other-session"
                )
            return {"$": "device", "type": value.base.device_type, "index": value.index}
        if isinstance(value, (Device, NDArray, np.ndarray)):
            what = "device" if isinstance(value, Device) else "array"
            raise RuntimeValueError(
                f"Can not pass in local {what}: a function of the server takes those of its session",
                code="rpc-local",
                help="session.array(x) makes an array there, session.device(kind) names a device",
            )
        if isinstance(value, Module):
            raise RuntimeTypeError("Can not pass in local module", code="rpc-local", help="upload and load_module")
        if callable(value):
            return {"$": "mine", "kind": "function", "id": self.keep(value), "name": getattr(value, "__name__", "")}
        raise RuntimeTypeError(f"a {type(value).__name__} cannot be passed to a server", code="packed-type")

    def object_of(self, kind: str, given: dict[str, Json]) -> object:
        number = given.get("id")
        if kind == "yours":
            return self.own(number)
        if kind == "device":
            return self._device(given.get("type"), given.get("index"))
        if kind != "mine" or type(number) is not int:
            raise damaged(f"a value of the kind {kind!r:.40}")
        text = {name: str(given.get(name, ""))[:200] for name in ("kind", "name", "type", "entry")}
        if text["kind"] == "function":
            return RemoteFunction(self, number, text["name"])
        if text["kind"] == "module":
            return RemoteModule(self, number, text["type"], text["entry"])
        if text["kind"] == "tensor":
            return self._tensor(number, given)
        raise damaged("an object of a kind that is not known here")

    def _tensor(self, number: int, given: dict[str, Json]) -> RemoteArray:
        at = given.get("device")
        if not isinstance(at, list) or len(at) != 2:
            raise damaged("a tensor without a device")
        shape, dtype = shape_of(given.get("shape")), dtype_of(given.get("dtype"))
        return RemoteArray(self, number, shape, dtype.name, self._device(*at))

    def _device(self, kind: Json, index: Json) -> RemoteDevice:
        if type(kind) is not int or kind not in KINDS.values() or type(index) is not int:
            raise damaged("a device that is none")
        return RemoteDevice(kind + 128 * (self.number + 1), index, self)

    def function(self, name: object) -> Callable[..., object]:
        found = self.own(name)  # what was passed as an argument, and nothing else
        if not callable(found):
            raise damaged("a call of what is no function")
        return found

    # -- devices, arrays, functions

    def device(self, dev_type: str | int, dev_id: int = 0) -> RemoteDevice:
        """A device of the server, by kind (`cpu`, `llvm`, `compass`, `cuda`, ...) or by an NPU target's name."""
        base = device(dev_type, dev_id)
        return self._device(base.device_type, base.index)

    def cpu(self, index: int = 0) -> RemoteDevice:
        return self.device("cpu", index)

    def cuda(self, index: int = 0) -> RemoteDevice:
        return self.device("cuda", index)

    def cl(self, index: int = 0) -> RemoteDevice:
        return self.device("opencl", index)

    def vulkan(self, index: int = 0) -> RemoteDevice:
        return self.device("vulkan", index)

    def metal(self, index: int = 0) -> RemoteDevice:
        return self.device("metal", index)

    def rocm(self, index: int = 0) -> RemoteDevice:
        return self.device("rocm", index)

    def hexagon(self, index: int = 0) -> RemoteDevice:
        return self.device("hexagon", index)

    def webgpu(self, index: int = 0) -> RemoteDevice:
        return self.device("webgpu", index)

    def ext_dev(self, index: int = 0) -> RemoteDevice:
        return self.device("ext_dev", index)

    def empty(self, shape: Sequence[int], dtype: DTypeLike = "float32", dev: RemoteDevice | None = None) -> RemoteArray:
        """A tensor on the server with undefined content."""
        at = (dev or self.cpu()).base
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
        return self.asked(RemoteArray, "tensor.empty", list(shape), name, at.device_type, at.index)

    def array(self, source: ArrayLike, dev: RemoteDevice | None = None) -> RemoteArray:
        """A tensor on the server with the content of an array."""
        given = np.asarray(source)
        return self.empty(given.shape, given.dtype, dev).copyfrom(given)

    def read_into(self, source: RemoteArray, flat: Array) -> None:
        """Copies a tensor of the server to an array of its bytes, in pieces."""
        for at in range(0, len(flat), PIECE):
            part = flat[at : at + PIECE]
            got = self.do("tensor.read", source, at, len(part))
            if not isinstance(got, memoryview) or len(got) != len(part):
                raise damaged("a piece of another size")
            part[...] = np.frombuffer(got, np.uint8)

    def given(self, arrays: Sequence[object]) -> list[object]:
        """Arrays as arguments: the first ones, as long as they are small, go with the call itself."""
        room, found = PIECE, list[object]()
        for value in arrays:
            if isinstance(value, (np.ndarray, NDArray)):
                content = np.asarray(value)
                room -= content.nbytes
                found.append(Inline(content) if room >= 0 else self.array(content))
            else:
                found.append(value)
        return found

    def get_function(self, name: str) -> RemoteFunction:
        """A function that whoever started the server registered for its clients. MissingFunction, an AttributeError, where
        there is none of that name."""
        found = self.do("server.function", name)
        if not isinstance(found, RemoteFunction):
            raise MissingFunction(f"the server offers no function '{name}'", code="no-function")
        return found

    # -- files

    def upload(self, data: str | Path | bytes | bytearray, target: str | None = None) -> None:
        """Copies a file, or bytes under the name `target`, into the session's folder."""
        if isinstance(data, (bytes, bytearray)):
            if target is None:
                raise ValueError("bytes need a name on the server: upload(data, target)")
            view, name = memoryview(data), target
        else:
            view, name = memoryview(files.read(Path(data))), target or Path(data).name
        for at in range(0, max(len(view), 1), PIECE):
            self.do("file.write", name, at, Raw(view[at : at + PIECE]))

    def download(self, path: str) -> bytearray:
        """The content of a file in the session's folder."""
        found = bytearray()
        while True:
            part = self.do("file.read", path, len(found), PIECE)
            if not isinstance(part, memoryview) or len(part) > PIECE:
                raise damaged("a piece of another size")
            found += part
            if len(part) < PIECE:
                return found

    def remove(self, path: str) -> None:
        """Deletes a file; one that is not there is no error."""
        self.do("file.remove", path)

    def listdir(self, path: str = "") -> str:
        """The names in a folder of the session, with commas between them."""
        return ",".join(self.asked(list, "file.names", path))

    def list_files(self, path: str = "") -> list[str]:
        """All files below a folder of the session."""
        return self.asked(list, "file.files", path)

    # -- modules and programs

    def load_module(self, path: str) -> RemoteModule:
        """Loads an uploaded file: an aipu.bin, or what `export_library` wrote."""
        return self.asked(RemoteModule, "module.load", path)

    def load_bytes(self, content: bytes, name: str = "aipu.bin") -> RemoteModule:
        """Uploads bytes and loads them as a module; the file is gone then."""
        self.upload(content, name)
        try:
            return self.load_module(name)
        finally:
            self.remove(name)

    def system_lib(self) -> RemoteModule:
        raise self._none("a library that is linked into it")

    def download_linked_module(self, path: str) -> bytearray:
        """The content of a shared library. There is no linker on a server: RPCError for objects and archives of them."""
        if path.endswith(".so"):
            return self.download(path)
        if path.endswith((".o", ".tar")):
            raise self._none("a linker")
        raise RPCError(f"Do not know how to link {path}", code="rpc-call", help="a shared library ends in .so")

    def _none(self, what: str) -> CompassError:
        return RPCError(
            f"the server has no {what.removeprefix('a ')}",
            code="rpc-call",
            help="modules are built where the program is, and loaded whole",
        )


def _end(channel: Channel, and_then: Callable[[], object]) -> None:
    channel.close()
    and_then()


def _cancel(number: int) -> Sequence[Buffer]:
    return packed(Kind.CANCEL, number, None)
