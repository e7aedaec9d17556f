"""Parts of ONNX files as Python values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compass_core.files.pieces import Pieces
from compassc.importers.onnx.external import is_external
from compassc.importers.values import Refused

if TYPE_CHECKING:
    from onnx import AttributeProto, TensorProto


def array_of(tensor: TensorProto, apart: Pieces | None = None) -> Array:
    """The content of a tensor, which may lie apart from it. Refused when its number of bytes does not match its type and shape."""
    from onnx import numpy_helper

    if apart is not None:
        return _read(apart, numpy_type(tensor.data_type)).reshape(tensor.dims)

    if is_external(tensor):  # which is for `external` to read
        raise Refused(f"the tensor '{tensor.name}' lies in a file")
    try:
        return numpy_helper.to_array(tensor)
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise Refused(f"the tensor '{tensor.name}' is damaged: {error}") from None


def _read(content: Pieces, dtype: NumpyDType) -> Array:
    """An array that is read from where its bytes lie."""
    made, at = np.empty(len(content), np.uint8), 0
    for part in content:
        made[at : at + len(part)] = np.frombuffer(part, np.uint8)
        at += len(part)
    made.flags.writeable = False
    return made.view(dtype)


def attribute_value(attribute: AttributeProto) -> Any:
    """The value of an attribute: number, text, array, body or list of these."""
    from onnx import AttributeProto, helper

    if attribute.type == AttributeProto.TENSOR:
        return array_of(attribute.t)
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if attribute.type == AttributeProto.STRINGS:
        return [v.decode("utf-8", "replace") for v in value]
    return list(value) if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS) else value


def numpy_type(elem: int) -> NumpyDType:
    """The NumPy type of a number of TensorProto.DataType. Refused when there is none."""
    from onnx import helper

    try:
        return np.dtype(helper.tensor_dtype_to_np_dtype(elem))
    except KeyError:
        raise Refused(f"the number {elem} stands for no type of tensors") from None


def elem_type(dtype: NumpyDType) -> int:
    """The number of TensorProto.DataType for a NumPy type."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(dtype))
