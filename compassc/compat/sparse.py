"""`tvm.contrib.sparse`: matrices as the values of their rows, the columns of these, and where each row begins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import UsageError
from compass_runtime.devices import Device, cpu
from compass_runtime.ndarray import NDArray
from compass_runtime.ndarray import array as on_device

from .. import te

ITYPE = "int32"
"""The type of columns and beginnings."""


class CSRNDArray:
    """A sparse matrix on a device: of an array with two dimensions, or of (values, columns, beginnings) and a `shape`."""

    def __init__(
        self, arg1: Array | Sequence[Array], device: Device | None = None, shape: Sequence[int] | None = None
    ) -> None:
        where = device or cpu()
        if isinstance(arg1, (tuple, list)):
            values, columns, begins = map(np.asarray, arg1)
            if shape is None:
                raise UsageError("a matrix of values, columns and beginnings needs its shape", code="input")
        else:
            dense = np.asarray(arg1)
            if dense.ndim != 2:
                raise UsageError(f"a sparse matrix has two dimensions, not {dense.ndim}", code="input")
            rows, columns = np.nonzero(dense)
            values, shape = dense[rows, columns], dense.shape
            begins = np.searchsorted(rows, np.arange(dense.shape[0] + 1))
        self.data: NDArray = on_device(values, where)
        self.indices, self.indptr = (on_device(v.astype(ITYPE), where) for v in (columns, begins))
        self.shape, self.dtype = tuple(int(n) for n in shape), str(values.dtype)

    def asnumpy(self) -> Array:
        """The matrix with its zeros."""
        made = np.zeros(self.shape, self.dtype)
        begins = self.indptr.numpy()
        made[np.repeat(np.arange(len(begins) - 1), np.diff(begins)), self.indices.numpy()] = self.data.numpy()
        return made

    numpy = asnumpy


def array(
    source_array: Array | Sequence[Array],
    device: Device | None = None,
    shape: Sequence[int] | None = None,
    stype: str = "csr",
) -> CSRNDArray:
    """A sparse matrix on a device. UsageError for other forms than `csr`."""
    _csr(stype)
    return CSRNDArray(source_array, device, shape)


class CSRPlaceholderOp:
    """The inputs that a sparse matrix is to a kernel."""

    def __init__(self, shape: Sequence[object], nonzeros: object, dtype: str, name: str) -> None:
        self.shape, self.dtype, self.name = tuple(shape), dtype, name
        self.data = te.placeholder((nonzeros,), dtype, name=f"{name}_data")
        self.indices = te.placeholder((nonzeros,), ITYPE, name=f"{name}_indices")
        self.indptr = te.placeholder((self.shape[0] + 1,), ITYPE, name=f"{name}_indptr")  # type: ignore[operator]


def placeholder(
    shape: Sequence[object],
    nonzeros: object = None,
    dtype: str | None = None,
    name: str = "placeholder",
    stype: str = "csr",
) -> CSRPlaceholderOp:
    """A sparse matrix as the inputs of a kernel: `data` and `indices` have as many elements as there are `nonzeros`."""
    _csr(stype)
    return CSRPlaceholderOp(shape, nonzeros, dtype or "float32", name)


def _csr(stype: str) -> None:
    if stype != "csr":
        raise UsageError(f"sparse matrices are of the form csr, not {stype}", code="input")
