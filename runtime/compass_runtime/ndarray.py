"""Tensors on a device. One on the host shares its memory with NumPy and, over DLPack, with other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compass_runtime.devices import ALIGNMENT, Device, cpu, device_api
from compass_runtime.errors import RuntimeStateError, RuntimeTypeError, RuntimeValueError
from compass_runtime.program import numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike


def _dtype(dtype: DTypeLike) -> NumpyDType:
    """A NumPy dtype from a name (bfloat16 too) or a dtype."""
    try:
        return numpy_dtype(dtype) if isinstance(dtype, str) else np.dtype(dtype)
    except TypeError:
        raise RuntimeTypeError(f"{dtype!r} is not a data type of tensors", code="tensor-dtype") from None


class NDArray:
    """A tensor. `np.asarray(a)` is a view of its memory, `a.numpy()` a copy.

    Memory of kind `compass` is that of the simulated NPU: the host sees it too.
    """

    __array_priority__ = 10

    def __init__(self, array: Array, dev: Device | None = None) -> None:
        self._array = array
        self.device = dev or cpu()

    @property
    def shape(self) -> tuple[int, ...]:
        made: tuple[int, ...] = self._array.shape
        return made

    @property
    def dtype(self) -> str:
        return self._array.dtype.name

    @property
    def nbytes(self) -> int:
        return self._array.nbytes

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        if dtype is not None and np.dtype(dtype) != self._array.dtype:
            return self._array.astype(dtype)
        return self._array.copy() if copy else self._array

    def same_as(self, other: object) -> bool:
        """Whether the other one is this tensor."""
        return self is other

    def numpy(self) -> Array:
        """A new array with the content."""
        return self._array.copy()

    asnumpy = numpy

    def __dlpack__(self, **options: Any) -> object:
        try:
            return self._array.__dlpack__(**options)
        except (BufferError, TypeError) as error:
            raise RuntimeStateError(
                f"a tensor of {self.dtype} cannot be exported over DLPack: {error}", code="dlpack"
            ) from error

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    to_dlpack = __dlpack__

    def copyfrom(self, source: Array | NDArray) -> NDArray:
        """Takes the content of an array of the same shape, converted to this dtype; returns itself."""
        array = np.asarray(source)
        if array.shape != self.shape:
            raise RuntimeValueError(
                f"cannot copy an array of shape {array.shape} to one of {self.shape}", code="tensor-shape"
            )
        self._array[...] = array.astype(self._array.dtype, copy=False)
        return self

    def copyto(self, target: NDArray | Device) -> NDArray:
        """Copies to a tensor of the same byte size, or to a new one on a device; returns it."""
        to = empty(self.shape, self._array.dtype, target) if isinstance(target, Device) else target
        devices = {kind for kind in (self.device.kind, to.device.kind) if kind != "cpu"}
        if len(devices) > 1:
            raise RuntimeStateError(
                f"no copies between {' and '.join(sorted(devices))}: copy through the host", code="device-copy"
            )
        flat = np.ascontiguousarray(self._array).reshape(-1).view(np.uint8)
        device_api(to.device).copy(flat, to._array.reshape(-1).view(np.uint8))
        return to

    def __setitem__(self, index: slice, value: int) -> None:
        if index not in (slice(None), ...):
            raise RuntimeValueError("only the whole tensor can be assigned: a[:] = value", code="tensor-index")
        self._array[...] = value._array if isinstance(value, NDArray) else value

    def _create_view(
        self, shape: Sequence[int], dtype: DTypeLike | None = None, relative_byte_offset: int = 0
    ) -> NDArray:
        """A tensor over a part of the same memory. RuntimeValueError when it is not inside, or has gaps."""
        wanted = self._array.dtype if dtype is None else _dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * wanted.itemsize
        where = f"a view of shape {tuple(shape)} ({wanted.name}, {size} bytes) at offset {relative_byte_offset}"
        if not self._array.flags.c_contiguous:
            raise RuntimeValueError(f"{where}: the tensor is not contiguous", code="tensor-view")
        if relative_byte_offset < 0 or relative_byte_offset + size > self.nbytes:
            raise RuntimeValueError(f"{where} is not inside the tensor's {self.nbytes} bytes", code="tensor-view")
        flat = self._array.reshape(-1).view(np.uint8)[relative_byte_offset : relative_byte_offset + size]
        return NDArray(flat.view(wanted).reshape(shape), self.device)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, NDArray) and self._array is other._array)

    def __hash__(self) -> int:
        return id(self._array)

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"<NDArray shape={self.shape}, {self.device}, {self.dtype}>\n{self._array!r}"


def empty(
    shape: Sequence[int] | int,
    dtype: NumpyDType | str = "float32",
    device: Device | None = None,
    mem_scope: str | None = None,
) -> NDArray:
    """A tensor whose content is undefined, 64-byte aligned; on a device of a remote session a `RemoteArray`."""
    if (session := getattr(device, "session", None)) is not None:
        made: NDArray = session.empty((shape,) if isinstance(shape, int) else shape, _dtype(dtype), device)
        return made
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    where = device or cpu()
    wanted = _dtype(dtype)
    data = device_api(where).alloc_tensor(where, dims, wanted, mem_scope)
    return NDArray(data.view(wanted).reshape(dims), where)


def array(source: ArrayLike, device: Device | None = None, mem_scope: str | None = None) -> NDArray:
    """A tensor with a copy of an array, list or tensor; lists of Python floats become float32."""
    given = source._array if isinstance(source, NDArray) else np.asarray(source)
    if not isinstance(source, (np.ndarray, np.generic, NDArray)) and given.dtype == np.float64:
        given = given.astype(np.float32)
    return empty(given.shape, given.dtype, device, mem_scope).copyfrom(given)


class _Given:
    """A capsule of host memory as an object that gives it."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: tuple[int, ...] | None) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def from_dlpack(source: object) -> NDArray:
    """A tensor over the memory of another library's, or of the capsule that it gave (`to_dlpack`).

    RuntimeValueError when it is not contiguous or not aligned, RuntimeTypeError for anything else.
    """
    if not hasattr(source, "__dlpack__") and type(source).__name__ != "PyCapsule":
        raise RuntimeTypeError(f"a {type(source).__name__} gives no memory over DLPack", code="dlpack")
    view = np.from_dlpack(source if hasattr(source, "__dlpack__") else _Given(source))
    if not view.flags.c_contiguous:
        raise RuntimeValueError("a tensor must be contiguous to be taken over DLPack", code="dlpack")
    if view.__array_interface__["data"][0] % (ALIGNMENT // 8):
        raise RuntimeValueError("the memory of a tensor taken over DLPack must be aligned to 8 bytes", code="dlpack")
    return NDArray(view)
