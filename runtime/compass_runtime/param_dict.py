"""Files of named tensors: what the parameters of a model are kept in, beside its graph.

Little-endian: a magic number, names, then tensors in the order of the names, each with a magic number of its own, device,
axes, type of elements and bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from compass_core import files
from compass_core.arrays import Array
from compass_runtime.errors import RuntimeTypeError, RuntimeValueError
from compass_runtime.ndarray import NDArray
from compass_runtime.program import numpy_dtype

LIST_MAGIC, TENSOR_MAGIC = 0xF7E58D4F05049CB7, 0xDD5E40F096B4A13F
CPU = 1
MOST_AXES = 64
_CODES = {"i": 0, "u": 1, "f": 2}
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}


def save_param_dict(params: Mapping[str, object]) -> bytearray:
    """The bytes of named tensors: arrays, or what NumPy makes arrays of. RuntimeTypeError for data types without a code."""
    out = bytearray(struct.pack("<QQQ", LIST_MAGIC, 0, len(params)))
    for name in params:
        raw = name.encode()
        out += struct.pack("<Q", len(raw)) + raw
    out += struct.pack("<Q", len(params))
    for name, value in params.items():
        out += _tensor(name, np.asarray(value))
    return out


def _tensor(name: str, array: Array) -> bytes:
    dtype = array.dtype
    if dtype.name == "bool":
        code, bits = 1, 1
    elif dtype.name == "bfloat16":
        code, bits = 4, 16
    elif dtype.kind in _CODES:
        code, bits = _CODES[dtype.kind], dtype.itemsize * 8
    else:
        raise RuntimeTypeError(f"parameter '{name}' is {dtype}: there is no code for that", code="tensor-dtype")
    data = array.astype(dtype.newbyteorder("<"), copy=False).tobytes()
    head = struct.pack("<QQiiiBBH", TENSOR_MAGIC, 0, CPU, 0, array.ndim, code, bits, 1)
    return head + struct.pack(f"<{array.ndim}qQ", *array.shape, len(data)) + data


class _Reader:
    """Bytes that are read from the front; every count is held against what is left."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = memoryview(data), 0

    def take(self, size: int) -> memoryview:
        """The next bytes."""
        if not 0 <= size <= len(self._data) - self._at:
            raise self.damaged(f"{size} bytes are asked for, {len(self._data) - self._at} are left")
        self._at += size
        return self._data[self._at - size : self._at]

    def numbers(self, form: str) -> tuple[Any, ...]:
        """The next numbers."""
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))

    def count(self, least: int, what: str) -> int:
        """The next number, of things of which each has so many bytes at least."""
        (found,) = self.numbers("Q")
        if found * least > len(self._data) - self._at:
            raise self.damaged(f"it says that there are {found} {what}")
        return int(found)

    def expect(self, magic: int, what: str) -> None:
        """A magic number, and the reserved number behind it."""
        found, _ = self.numbers("QQ")
        if found != magic:
            raise self.damaged(f"{what} begin with {magic:#x}, not {found:#x}")

    def damaged(self, why: str) -> RuntimeValueError:
        """The error of bytes that are not what they are to be."""
        return RuntimeValueError(
            f"Invalid parameters file format: at byte {self._at}: {why}",
            code="parameter-file",
            help="give what save_param_dict wrote",
        )


def load_param_dict(data: bytes | bytearray) -> dict[str, NDArray]:
    """The tensors of such bytes by name. RuntimeValueError where they are damaged."""
    reader = _Reader(bytes(data))
    reader.expect(LIST_MAGIC, "parameters")
    names: list[str] = []
    for _ in range(reader.count(8, "names")):
        raw = bytes(reader.take(reader.count(1, "letters")))
        try:
            names.append(raw.decode())
        except UnicodeDecodeError:
            raise reader.damaged("a name is no UTF-8") from None
    tensors = reader.count(32, "tensors")
    if tensors != len(names) or len(set(names)) != len(names):
        raise reader.damaged(f"{len(names)} names ({len(set(names))} different ones) for {tensors} tensors")
    return {name: NDArray(_read(reader)) for name in names}


def _read(reader: _Reader) -> Array:
    reader.expect(TENSOR_MAGIC, "tensors")
    _, _, axes, code, bits, lanes = reader.numbers("iiiBBH")
    if not 0 <= axes <= MOST_AXES:
        raise reader.damaged(f"a tensor has {axes} axes")
    shape = reader.numbers(f"{axes}q")
    name = "bool" if (code, bits) == (1, 1) else f"{_KINDS.get(code, 'unknown')}{bits}"
    try:
        dtype = numpy_dtype(name)
    except TypeError:
        raise reader.damaged(f"a tensor has elements of {name}") from None
    (size,) = reader.numbers("Q")
    if lanes != 1 or any(n < 0 for n in shape) or size != math.prod(shape) * dtype.itemsize:
        raise reader.damaged(f"a tensor of shape {shape} of {name} x {lanes} has {size} bytes")
    return np.frombuffer(reader.take(size), dtype).reshape(shape).copy()


def save_param_dict_to_file(params: Mapping[str, object], path: str | Path) -> None:
    """Write named tensors to a file."""
    files.write(Path(path), bytes(save_param_dict(params)))


def load_param_dict_from_file(path: str | Path) -> dict[str, NDArray]:
    """The tensors of a file by name."""
    return load_param_dict(Path(path).read_bytes())
