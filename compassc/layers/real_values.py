"""What the elements of tensors stand for: quantised integers real numbers, all others themselves."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.arithmetic import dequantise, quantise


def stands_for_itself(tensor: Tensor) -> bool:
    """Whether the elements are the numbers: of floats, and of integers that nobody has scaled."""
    return not tensor.is_integer or (tensor.scale == 1.0 and tensor.zero == 0)


def to_raw(tensor: Tensor, numbers: Array) -> Array:
    """The elements of a tensor that stand for some numbers; of a quantised one the nearest, limited to its range."""
    dtype = numpy_dtype(tensor.dtype)
    if stands_for_itself(tensor) and not (tensor.is_integer and numbers.dtype.kind == "f"):
        return numbers.astype(dtype, copy=False)
    scale, zero = _spread(tensor)
    return quantise(numbers, scale, zero, tensor.low, tensor.high).astype(dtype)


def to_real(tensor: Tensor, elements: Array) -> Array:
    """The numbers that elements stand for: of a quantised tensor, and of short floats, in float32."""
    if not stands_for_itself(tensor):
        scale, zero = _spread(tensor)
        return np.asarray(dequantise(elements, scale, zero), np.float32)
    short = not tensor.is_integer and elements.dtype.itemsize < 4
    return elements.astype(np.float32) if short else elements


def _spread(tensor: Tensor) -> tuple[Array, Array]:
    """Scale and zero point, so that they broadcast along their axis: the last one where none is named."""
    lined = [1] * len(tensor.shape)
    if lined:
        lined[-1 if tensor.axis is None else tensor.axis] = -1
    found = (np.asarray(tensor.scale, np.float32), np.asarray(tensor.zero, np.int64))
    scale, zero = (n.reshape(lined) if n.ndim else n for n in found)
    return scale, zero
