"""Fast paths: operations that are one NumPy function when no option is set.

The declared meaning is authoritative; an operation is listed here when NumPy's function gives the same bits for operands
that already have the element type of the operation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compassc.ir.dtypes import DataType
from compassc.ops.numeric import np_dtype
from compassc.ops.typing import Typed

Function = Callable[..., Array]

_ALWAYS: dict[str, Function] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vmul": np.multiply,
    "vceq": np.equal,
    "vcneq": np.not_equal,
    "vcge": np.greater_equal,
    "vcgt": np.greater,
    "vcle": np.less_equal,
    "vclt": np.less,
    "vand": np.bitwise_and,
    "vor": np.bitwise_or,
    "vxor": np.bitwise_xor,
    "vinv": np.invert,
}
_INTEGER_SCALAR: dict[str, Function] = {"max": max, "min": min}


def quotient(x: Array, y: Array) -> Array:
    """Integer lanes divided toward zero, at most the largest of the type; x / 0 is 0.

    A float64 quotient of 32-bit integers that is no integer is further from the next one than it is rounded.
    """
    exact = np.divide(x, y, dtype=np.float64)
    np.copyto(exact, 0.0, where=y == 0)
    if x.dtype.kind == "i":
        exact = np.minimum(exact, np.iinfo(x.dtype).max)
    return exact.astype(np.int64).astype(x.dtype)


_INTEGER: dict[str, Function] = {
    "max": np.maximum,
    "min": np.minimum,
    "vdiv": quotient,
    "vsl": np.left_shift,
    "vsr": np.right_shift,  # NumPy, too, gives 0 or -1 when no bits are left
}
_FLOATING: dict[str, Function] = {"vdiv": np.divide}
_SATURATED = {"vadd": np.add, "vsub": np.subtract}


def _saturated(exact: Function, elem: DataType) -> Function:
    """A sum or difference clipped to the range of its type."""
    kind = np_dtype(elem)
    wide = np.dtype(np.int64 if elem.bits == 32 else np.int32)
    low, high = map(wide.type, elem.range())

    def run(x: Array, y: Array) -> Array:
        found: Array = np.minimum(np.maximum(exact(x, y, dtype=wide), low), high).astype(kind)
        return found

    return run


def direct(name: str, typed: Typed, options: dict[str, object]) -> Function | None:
    """The function that computes an operation on operands of these types; None when its meaning must."""
    elem = typed.operands[0].element_of
    if any(t.element_of is not elem for t in typed.operands):
        return None
    if typed.result.element_of is not elem and not typed.result.is_bool:
        return None
    asked = {key for key, value in options.items() if value}
    if asked == {"saturate"} and elem.is_integer and name in _SATURATED:
        return _saturated(_SATURATED[name], elem)
    if asked:
        return None
    own = _FLOATING if not elem.is_integer else _INTEGER_SCALAR if typed.result.is_scalar else _INTEGER
    return _ALWAYS.get(name) or own.get(name)
