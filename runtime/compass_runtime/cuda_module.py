"""Modules of CUDA devices: CUDA C, its PTX, and the launches of a call, by the CUDA driver.

Arrays are in the memory of the host; a call copies them to the device and the outputs back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_runtime.arguments import LARGEST, Arguments, Size, evaluated, parameters_of
from compass_runtime.devices import ATTRIBUTES, Device, DeviceAPI, aligned_bytes
from compass_runtime.errors import RuntimeStateError, RuntimeValueError
from compass_runtime.module import ENTRY, LOADER, RUNNABLE, SERIALIZABLE, Module, sealed, unsealed
from compass_runtime.packed import register_func

if TYPE_CHECKING:
    from compass_runtime.arguments import Parameter

_MAX_THREADS = 1
"""CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK."""


class Driver:
    """The CUDA driver with the first device's context. RuntimeStateError where there is no driver or no device."""

    _made: Driver | None = None

    @classmethod
    def get(cls) -> Driver:
        cls._made = cls._made or cls()
        return cls._made

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise _no_device("the CUDA driver (libcuda.so.1) is not installed") from None
        count = ctypes.c_int()
        if self.library.cuInit(0) or self.library.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
            raise _no_device("the CUDA driver finds none")
        self.device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.do("cuDeviceGet", ctypes.byref(self.device), 0)
        self.do("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self.device)

    def do(self, name: str, *args: object) -> None:
        """Calls a function of the driver; RuntimeStateError when it fails."""
        status = getattr(self.library, name)(*args)
        if status:
            said = ctypes.c_char_p()
            self.library.cuGetErrorString(status, ctypes.byref(said))
            text = (said.value or b"").decode(errors="replace")
            raise RuntimeStateError(f"{name} fails: {text or status}", code="cuda-driver")

    def attribute(self, number: int) -> int:
        """An attribute of the device."""
        value = ctypes.c_int()
        self.do("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value


def _no_device(why: str) -> RuntimeStateError:
    return RuntimeStateError(
        f"there is no CUDA device to launch on: {why}",
        code="no-cuda",
        help="the module can be exported and run where there is one; `get_source()` shows what was built",
    )


class CudaModule(Module):
    """The kernels of one function. `description`: the function's name and parameters, `launches` with name, arguments,
    grid and block, and the bytes of `workspaces` by name."""

    type_key = "compass.runtime.CudaModule"
    flags = SERIALIZABLE | RUNNABLE

    def __init__(self, source: str, ptx: str, description: dict[str, Any]) -> None:
        super().__init__()
        self.source, self.ptx, self.description = source, ptx, description
        self.name = str(description["name"])
        self.arguments = Arguments(self.name, parameters_of(description))
        self.launches = [
            (str(x["name"]), [str(a) for a in x["arguments"]], list(x["grid"]), list(x["block"]))
            for x in description["launches"]
        ]
        self.workspaces = dict(description["workspaces"])

    @property
    def format(self) -> str:
        return "cuda"

    def get_source(self, format: str = "") -> str:
        """CUDA C, or with `ptx` the PTX; RuntimeStateError where it was built without NVRTC, which makes that."""
        if format == "ptx":
            return self._ptx()
        return self.source if format in ("", "cuda", self.format) else ""

    def _ptx(self) -> str:
        if not self.ptx:
            raise RuntimeStateError(
                f"'{self.name}' was built without NVRTC: there is no PTX",
                code="nvrtc",
                help="pip install nvidia-cuda-nvrtc-cu12, and build it again; get_source() is the CUDA C",
            )
        return self.ptx

    def find(self, name: str) -> Callable[..., object] | None:
        return self.call if name in (self.name, ENTRY) else None

    @cached_property
    def _functions(self) -> list[ctypes.c_void_p]:
        """The kernels on the device."""
        driver = Driver.get()
        loaded = ctypes.c_void_p()
        driver.do("cuModuleLoadData", ctypes.byref(loaded), self._ptx().encode() + b"\0")
        found = []
        for name, *_ in self.launches:
            function = ctypes.c_void_p()
            driver.do("cuModuleGetFunction", ctypes.byref(function), loaded, name.encode())
            found.append(function)
        return found

    def _bytes_of(self, name: str, size: Size, numbers: Mapping[str, int]) -> int:
        """The bytes of a workspace. RuntimeStateError where kernels cannot count its elements."""
        if not isinstance(size, int) and evaluated(size[1], numbers) >= LARGEST:
            raise RuntimeStateError(
                f"out of memory in '{self.name}': '{name}' would have {evaluated(size[1], numbers):,} elements",
                code="out-of-memory",
            )
        return evaluated(size, numbers)

    def call(self, *args: object) -> None:
        """Runs with one argument for each parameter; outputs are changed in place."""
        arrays, back = self.arguments.laid_out(args)
        by_name = {p.name: a for p, a in zip(self.arguments.parameters, arrays, strict=True)}
        driver = Driver.get()
        driver.do("cuCtxSetCurrent", driver.context)
        functions = self._functions
        held: dict[str, ctypes.c_uint64] = {}
        numbers = {p.name: int(by_name[p.name][0]) for p in self.arguments.parameters if _is_count(p)}
        spaces = [(name, self._bytes_of(name, size, numbers)) for name, size in self.workspaces.items()]
        try:
            tensors = [p for p in self.arguments.parameters if p.shape is not None]
            for name, size in (*((p.name, by_name[p.name].nbytes) for p in tensors), *spaces):
                held[name] = ctypes.c_uint64()
                driver.do("cuMemAlloc_v2", ctypes.byref(held[name]), ctypes.c_size_t(max(size, 1)))
            for p in tensors:
                _copy(driver, "cuMemcpyHtoD_v2", held[p.name], by_name[p.name])
            for function, launch in zip(functions, self.launches, strict=True):
                self._launch(driver, function, launch, held, by_name, numbers)
            driver.do("cuCtxSynchronize")
            for p in tensors:
                if p.output:
                    _copy(driver, "cuMemcpyDtoH_v2", held[p.name], by_name[p.name])
        finally:
            for pointer in held.values():
                if pointer.value:
                    driver.library.cuMemFree_v2(pointer)
        for given, used in back:
            given[...] = used

    def _launch(
        self,
        driver: Driver,
        function: object,
        launch: tuple[str, list[str], list[Size], list[Size]],
        held: dict[str, ctypes.c_uint64],
        by_name: dict[str, Array],
        numbers: dict[str, int],
    ) -> None:
        _, arguments, grid, block = launch
        sizes = [evaluated(size, numbers) for size in (*grid, *block)]
        if not all(sizes):
            return  # no turns
        values = [held[a] if a in held else by_name[a] for a in arguments]
        pointers = [v.ctypes.data if isinstance(v, np.ndarray) else ctypes.addressof(v) for v in values]
        packed = (ctypes.c_void_p * max(len(pointers), 1))(*pointers)
        driver.do("cuLaunchKernel", function, *map(ctypes.c_uint, sizes), 0, None, packed, None)

    def save_to_bytes(self) -> bytes:
        return sealed({"source": self.source, "description": self.description}, self.ptx.encode())


def _is_count(p: Parameter) -> bool:
    return p.shape is None and p.dtype.kind in "iu"


def _copy(driver: Driver, name: str, device: ctypes.c_uint64, array: Array) -> None:
    if array.nbytes:
        host = ctypes.c_void_p(array.ctypes.data)
        ends = (device, host) if "HtoD" in name else (host, device)
        driver.do(name, *ends, ctypes.c_size_t(array.nbytes))


def load_content(data: bytes) -> CudaModule:
    """The module that `save_to_bytes` wrote. RuntimeValueError when the bytes are damaged."""
    try:
        fields, ptx = unsealed(data, CudaModule.type_key)
        if not isinstance(fields["source"], str):
            raise TypeError("a field is of another type")
        return CudaModule(fields["source"], ptx.decode(), fields["description"])
    except (CompassError, ValueError, KeyError, TypeError, AttributeError):
        raise RuntimeValueError(f"the content of a {CudaModule.type_key} is damaged", code="module-file") from None


class CudaDeviceAPI(DeviceAPI):
    """Arrays for CUDA programs lie in the memory of the host: a call copies them to the device, and back."""

    def get_attr(self, dev: Device, kind: int) -> Any:
        try:
            driver = Driver.get()
        except RuntimeStateError:
            return False if kind == ATTRIBUTES["exist"] else None
        if kind == ATTRIBUTES["max_threads_per_block"]:
            return driver.attribute(_MAX_THREADS)
        return super().get_attr(dev, kind)

    def alloc(self, dev: Device, nbytes: int, alignment: int = 64) -> Array:
        return aligned_bytes(nbytes, max(alignment, 64))


register_func(LOADER + CudaModule.type_key, load_content)
