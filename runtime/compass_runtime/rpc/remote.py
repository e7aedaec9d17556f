"""What stands for objects of the other side: functions, modules and arrays by their numbers, devices."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_runtime.devices import ATTRIBUTES, Device
from compass_runtime.errors import MissingFunction, RuntimeValueError
from compass_runtime.packed import PackedFunc
from compass_runtime.rpc.wire import PIECE, Raw
from compass_runtime.timing import BenchmarkResult

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from compass_runtime.ndarray import NDArray
    from compass_runtime.rpc.channel import Peer
    from compass_runtime.rpc.session import Session


def _held(owner: object, peer: Peer, number: int) -> None:
    """Tells the other side, with the next call, when nobody has the object any more."""
    weakref.finalize(owner, peer.released.append, number).atexit = False


def _call(peer: Peer, number: int, *args: object) -> object:
    return peer.call(number, args, None, None)


class RemoteFunction(PackedFunc):
    """A function of the other side. It runs there; what it raises arrives as `RPCError`."""

    def __init__(self, peer: Peer, number: int, name: str = "") -> None:
        super().__init__(partial(_call, peer, number), name, peer)
        self.peer, self.number = peer, number
        _held(self, peer, number)

    def __call__(self, *args: object) -> Any:
        return self.body(*args)

    def __repr__(self) -> str:
        return f"<RemoteFunction {self.name}>"


@dataclass(frozen=True)
class RemoteDevice(Device):
    """A device of a server. `device_type` tells the session, too: the code of the kind, and 128 for each session and one more."""

    session: Any = None

    @property
    def base(self) -> Device:
        """The device as the server calls it."""
        return Device(self.device_type % 128, self.index)

    @property
    def kind(self) -> str:
        return self.base.kind

    @property
    def _rpc_sess(self) -> Session:
        session: Session = self.session
        return session

    def __getattr__(self, name: str) -> Any:
        if name not in ATTRIBUTES:
            raise AttributeError(f"a device has no attribute '{name}'")
        return self.session.do("device.attribute", self, name)

    def sync(self, stream: object = None) -> None:
        """Waits for all work on the device."""
        self.session.do("device.sync", self)

    def __str__(self) -> str:
        return f"remote[{self.session.number}]:{self.kind}:{self.index}"


class RemoteArray:
    """A tensor on a server. Its content comes and goes by `numpy()` and `copyfrom`, in pieces."""

    packed_object = True
    __array_priority__ = 10

    def __init__(self, session: Session, number: int, shape: Sequence[int], dtype: str, device: RemoteDevice) -> None:
        from compass_runtime.program import numpy_dtype

        self.session, self.number, self.device = session, number, device
        self.shape, self._dtype = tuple(shape), numpy_dtype(dtype)
        _held(self, session, number)

    @property
    def dtype(self) -> str:
        return self._dtype.name

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self._dtype.itemsize

    def numpy(self) -> Array:
        """A new array with the content."""
        flat = np.empty(self.nbytes, np.uint8)
        self.session.read_into(self, flat)
        return flat.view(self._dtype).reshape(self.shape)

    asnumpy = numpy

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        found = self.numpy()
        return found if dtype is None else found.astype(dtype, copy=False)

    def copyfrom(self, source: Array) -> RemoteArray:
        """Takes the content of an array of the same shape, converted to this dtype; returns itself."""
        array = np.asarray(source)
        if array.shape != self.shape:
            raise RuntimeValueError(
                f"cannot copy an array of shape {array.shape} to one of {self.shape}", code="tensor-shape"
            )
        flat = np.ascontiguousarray(array.astype(self._dtype, copy=False)).reshape(-1).view(np.uint8)
        for at in range(0, len(flat), PIECE):
            self.session.do("tensor.write", self, at, Raw(flat[at : at + PIECE].data))
        return self

    def copyto(self, target: RemoteArray | NDArray | Device) -> RemoteArray | NDArray:
        """Copies to a tensor of the same shape here or there, or to a new one on a device; returns it."""
        from compass_runtime.ndarray import NDArray, array, empty

        if isinstance(target, Device):
            target = (
                empty(self.shape, self._dtype, target)
                if isinstance(target, RemoteDevice)
                else array(self.numpy(), target)
            )
        if isinstance(target, RemoteArray) and target.session is self.session:
            self.session.do("tensor.copy", self, target)
        elif isinstance(target, (RemoteArray, NDArray)):
            target.copyfrom(self.numpy())
        return target

    def __setitem__(self, index: object, value: object) -> None:
        if index not in (slice(None), ...):
            raise RuntimeValueError("only the whole tensor can be assigned: a[:] = value", code="tensor-index")
        self.copyfrom(np.broadcast_to(np.asarray(value), self.shape))

    def _create_view(
        self, shape: Sequence[int], dtype: DTypeLike | None = None, relative_byte_offset: int = 0
    ) -> RemoteArray:
        """A tensor over a part of the same memory."""
        name = self._dtype.name if dtype is None else np.dtype(dtype).name
        return self.session.asked(RemoteArray, "tensor.view", self, list(shape), name, relative_byte_offset)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<RemoteArray shape={self.shape}, {self.device}, {self.dtype}>"


class RemoteModule:
    """A module that a server has loaded."""

    packed_object = True

    def __init__(self, session: Session, number: int, type_key: str, entry_name: str) -> None:
        self.session, self.number = session, number
        self.type_key, self.entry_name = type_key, entry_name
        self._entry: PackedFunc | None = None
        _held(self, session, number)

    def get_function(self, name: str, query_imports: bool = False) -> RemoteFunction:
        """The function of that name, of the module or, when asked, of its imports."""
        found = self.session.do("module.function", self, name, query_imports)
        if not isinstance(found, RemoteFunction):
            raise MissingFunction(f"the remote module ({self.type_key}) has no function '{name}'", code="no-function")
        found.owner = self
        return found

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether `get_function` finds something."""
        return self.session.do("module.function", self, name, query_imports) is not None

    def __getitem__(self, name: str) -> RemoteFunction:
        return self.get_function(name, True)

    @property
    def entry_func(self) -> PackedFunc:
        """The function that a call of the module is."""
        if self._entry is None:
            self._entry = self.get_function(self.entry_name)
        return self._entry

    def __call__(self, *args: object) -> Any:
        return self.entry_func(*args)

    @property
    def imported_modules(self) -> list[RemoteModule]:
        return self.session.asked(list, "module.imports", self)

    def import_module(self, other: RemoteModule) -> None:
        """Adds an import, which is of the same session."""
        assert isinstance(other, RemoteModule) and other.session is self.session, "both modules are of one session"
        self.session.do("module.import", self, other)

    def get_source(self, format: str = "") -> str:
        """The source text; empty where there is none."""
        return str(self.session.do("module.source", self, format))

    def time_evaluator(
        self,
        func_name: str,
        dev: RemoteDevice,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0,
        f_preproc: str = "",
    ) -> Callable[..., BenchmarkResult]:
        """A function that measures `func_name` on the server, with the arguments it is called with, in seconds per call; see
        `Module.time_evaluator`. `f_preproc` names a function of the server."""
        plan = {
            "number": number,
            "repeat": repeat,
            "min_repeat_ms": min_repeat_ms,
            "limit_zero_time_iterations": limit_zero_time_iterations,
            "cooldown_interval_ms": cooldown_interval_ms,
            "repeats_to_cooldown": repeats_to_cooldown,
            "cache_flush_bytes": cache_flush_bytes,
            "f_preproc": f_preproc,
        }
        if not self.implements_function(func_name, True):
            raise MissingFunction(f"the remote module has no function '{func_name}'", code="no-function")

        def evaluate(*args: object) -> BenchmarkResult:
            return BenchmarkResult(tuple(self.session.asked(list, "module.time", self, func_name, dev, plan, *args)))

        return evaluate

    def __repr__(self) -> str:
        return f"<RemoteModule {self.type_key}>"
