"""Devices and their memory: which kinds there are, and the functions that allocate, copy and wait on each kind.

Kind `cpu` is the memory of this process; kind `compass` is the memory of a simulated NPU, of the target that the switch
TARGET names.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compass_core import targets
from compass_core.arrays import NumpyDType
from compass_core.dataclass import dataclass
from compass_core.switches import TARGET
from compass_runtime.errors import RuntimeStateError, RuntimeValueError
from compass_runtime.packed import get_global_func, register_func

if TYPE_CHECKING:
    import numpy as np

    Bytes = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]

KINDS = {
    "cpu": 1,
    "cuda": 2,
    "cuda_host": 3,
    "opencl": 4,
    "vulkan": 7,
    "metal": 8,
    "vpi": 9,
    "rocm": 10,
    "rocm_host": 11,
    "ext_dev": 12,
    "cuda_managed": 13,
    "oneapi": 14,
    "webgpu": 15,
    "hexagon": 16,
    "compass": 60,
}
"""Codes of the device kinds; only those with a device API can be used."""
_ALIASES = {
    **dict.fromkeys(("llvm", "c", "stackvm", "composite", "test", "hybrid"), "cpu"),
    **dict.fromkeys(("nvptx", "gpu"), "cuda"),
    **dict.fromkeys(("cl", "sdaccel"), "opencl"),
}
"""Kinds of targets by the devices that their modules run on."""
_NAMES = {code: name for name, code in KINDS.items()}
ATTRIBUTES = {
    "exist": 0,
    "max_threads_per_block": 1,
    "warp_size": 2,
    "max_shared_memory_per_block": 3,
    "compute_version": 4,
    "device_name": 5,
    "max_clock_rate": 6,
    "multi_processor_count": 7,
    "max_thread_dimensions": 8,
    "api_version": 11,
    "l2_cache_size_bytes": 13,
    "total_global_memory": 14,
    "available_global_memory": 15,
}
ALIGNMENT = 64
"""Least alignment of allocations, in bytes."""


@dataclass(frozen=True)
class Device:
    """One device: its kind's code and its index. Attributes (`device_name`, ...) are None where the kind has none."""

    device_type: int
    index: int = 0

    @property
    def kind(self) -> str:
        return _NAMES[self.device_type]

    def __getattr__(self, name: str) -> Any:
        if name not in ATTRIBUTES:
            raise AttributeError(f"a device has no attribute '{name}'")
        api = get_global_func(f"device_api.{self.kind}", allow_missing=True)
        if api is None:
            return False if name == "exist" else None
        return device_api(self).get_attr(self, ATTRIBUTES[name])

    def sync(self, stream: object = None) -> None:
        """Waits for all work on the device."""
        device_api(self).stream_sync(self, stream)

    def create_raw_stream(self) -> None:
        """The one stream that there is."""

    def free_raw_stream(self, stream: None) -> None:
        """Nothing: there is one stream."""

    def set_raw_stream(self, stream: None) -> None:
        """Nothing: there is one stream."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"


def device(kind: str | int, index: int = 0) -> Device:
    """A device by kind (`cpu`, `cpu:0`, or a code) or by a target (`llvm -mcpu=x86-64-v3`, or an NPU's name). RuntimeValueError
    for an unknown one."""
    if isinstance(kind, int):
        if kind not in _NAMES:
            raise RuntimeValueError(f"there is no device kind {kind}", code="device-kind")
        return Device(kind, index)
    name, colon, number = (kind.split() or [""])[0].partition(":")
    name = "compass" if name in targets.names() else _ALIASES.get(name, name)
    if name not in KINDS or (colon and not number.isdecimal()):
        raise RuntimeValueError(f"unknown device '{kind}'", code="device-kind", help="kinds: " + ", ".join(KINDS))
    return Device(KINDS[name], int(number) if colon else index)


def cpu(index: int = 0) -> Device:
    """The memory of this process."""
    return Device(KINDS["cpu"], index)


def cuda(index: int = 0) -> Device:
    """A GPU. Its arrays are in the memory of the host, and copied by each call."""
    return Device(KINDS["cuda"], index)


class DeviceAPI:
    """The interface of a kind of device. A pointer is a result of `alloc`: an array of bytes that lie in the device's memory.

    A kind is made known by registering its object's maker as `device_api.NAME`. There is one stream, and work on it is
    in order.
    """

    def set_device(self, dev: Device) -> None:
        """Selects the device of that index; RuntimeValueError when there is none."""
        if not self.get_attr(dev, ATTRIBUTES["exist"]):
            raise RuntimeValueError(f"there is no device {dev}", code="device-index")

    def get_attr(self, dev: Device, kind: int) -> object:
        """An attribute by its code; None where this kind of device has none."""
        return dev.index == 0 if kind == ATTRIBUTES["exist"] else None

    def alloc(self, dev: Device, nbytes: int, alignment: int = ALIGNMENT) -> Bytes:
        """`nbytes` of memory, with undefined content; 0 is fine."""
        raise RuntimeStateError(f"{type(self).__name__} gives no memory", code="device-memory")

    def alloc_tensor(self, dev: Device, shape: Sequence[int], dtype: NumpyDType, mem_scope: str | None = None) -> Bytes:
        """Memory for a tensor. RuntimeValueError for a memory scope that the device does not have."""
        import numpy as np

        if mem_scope not in (None, "", "global"):
            raise RuntimeValueError(f"{dev} has no memory scope '{mem_scope}'", code="memory-scope")
        return self.alloc(dev, int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize)

    def free(self, dev: Device, pointer: Bytes) -> None:
        """Gives memory back before the last array that looks at it is gone."""

    def copy(self, source: Bytes, to: Bytes) -> None:
        """Copies bytes; RuntimeValueError when the sizes differ."""
        if source.nbytes != to.nbytes:
            raise RuntimeValueError(f"cannot copy {source.nbytes} bytes to {to.nbytes}", code="copy-size")
        to[...] = source

    def stream_sync(self, dev: Device, stream: object = None) -> None:
        """Waits for all work; nothing is asynchronous here."""

    def create_stream(self, dev: Device) -> None:
        """The one stream."""

    def set_stream(self, dev: Device, stream: object) -> None:
        """Selects the one stream."""

    def free_stream(self, dev: Device, stream: object) -> None:
        """Nothing to free."""


def aligned_bytes(nbytes: int, alignment: int = ALIGNMENT) -> Bytes:
    """Host memory at an aligned address. RuntimeStateError with the size when there is none left."""
    import numpy as np

    try:
        room = np.empty(nbytes + alignment, np.uint8)
    except MemoryError:
        raise RuntimeStateError(f"out of memory: {nbytes} bytes", code="out-of-memory") from None
    start = -room.__array_interface__["data"][0] % alignment
    return room[start : start + nbytes]


class HostDeviceAPI(DeviceAPI):
    """The memory of this process."""

    def alloc(self, dev: Device, nbytes: int, alignment: int = ALIGNMENT) -> Bytes:
        return aligned_bytes(nbytes, max(alignment, ALIGNMENT))


class CompassDeviceAPI(DeviceAPI):
    """Memory for arrays that programs are called with. Each program has memory of its own on its NPU: arrays are copied
    there for a run, and back."""

    def get_attr(self, dev: Device, kind: int) -> object:
        from compass_runtime.npu import target_of

        target = target_of(TARGET.get())
        known = {
            "device_name": target.name,
            "multi_processor_count": target.cores,
            "max_threads_per_block": target.tecs,
            "max_shared_memory_per_block": target.gsram_bytes,
        }
        return {ATTRIBUTES[name]: value for name, value in known.items()}.get(kind, super().get_attr(dev, kind))

    def alloc(self, dev: Device, nbytes: int, alignment: int = ALIGNMENT) -> Bytes:
        return aligned_bytes(nbytes, max(alignment, 4096))


_apis: dict[str, DeviceAPI] = {}
_lock = threading.Lock()


def device_api(dev: Device) -> DeviceAPI:
    """The device API of a device's kind. RuntimeStateError when the kind is not enabled."""
    with _lock:
        if dev.kind not in _apis:
            maker = get_global_func(f"device_api.{dev.kind}", allow_missing=True)
            if maker is None:
                raise RuntimeStateError(
                    f"the device {dev} cannot be used: there is no 'device_api.{dev.kind}'", code="device-disabled"
                )
            _apis[dev.kind] = maker.body()
        return _apis[dev.kind]


def _cuda() -> DeviceAPI:
    from compass_runtime.cuda_module import CudaDeviceAPI

    return CudaDeviceAPI()


register_func("device_api.cpu", HostDeviceAPI)
register_func("device_api.cuda", _cuda)
register_func("device_api.compass", CompassDeviceAPI)
