"""Operations that are one NumPy function where no option asks for more: what makes them fast.

The declared meaning stays the law; an operation is listed here when NumPy's function gives the same bits for operands
that already have the element type of the operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compassc.ops.typing import Typed

_ALWAYS: dict[str, Callable[..., Any]] = {
    "vadd": np.add, "vsub": np.subtract, "vmul": np.multiply,
    "vceq": np.equal, "vcneq": np.not_equal, "vcge": np.greater_equal,
    "vcgt": np.greater, "vcle": np.less_equal, "vclt": np.less,
    "vand": np.bitwise_and, "vor": np.bitwise_or, "vxor": np.bitwise_xor, "vinv": np.invert,
}  # fmt: skip
_INTEGER = {"max": np.maximum, "min": np.minimum}
_INTEGER_SCALAR = {"max": max, "min": min}


def direct(name: str, typed: Typed, options: dict[str, Any]) -> Callable[..., Any] | None:
    """The function that computes an operation on operands of these types; None when its meaning must."""
    elem = typed.operands[0].element_of
    if any(options.values()) or any(t.element_of is not elem for t in typed.operands):
        return None
    if typed.result.element_of is not elem and not typed.result.is_bool:
        return None
    found: Callable[..., Any] | None = _ALWAYS.get(name)
    if found is None and elem.is_integer:
        found = (_INTEGER_SCALAR if typed.result.is_scalar else _INTEGER).get(name)
    return found
