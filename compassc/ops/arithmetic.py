"""Arithmetic operations."""

from __future__ import annotations

from typing import Any

from .core import Typed, np, value_op
from .typing import Operand, broadcast_group, out_sign_dtype, same_sign, type_error

GROUP = "Arithmetic"


def typed_add(operands: list[Operand], saturate: bool = False, out_sign: str | None = None) -> Typed:
    """Both operands broadcast; the result has the first operand's type, with the sign `out_sign` asks for."""
    types = broadcast_group(operands)
    if out_sign is None:
        same_sign(types)
    if saturate and types[0].is_floating:
        raise type_error("saturate=True has no meaning on floating-point vectors")
    result = out_sign_dtype(types[0], out_sign)
    return Typed(tuple(types), result)


def wrap_or_clip(exact: Any, dtype: Any, saturate: bool) -> Any:
    """An exact integer result (int64) brought into `dtype`: clipped, or modulo 2^bits."""
    if saturate:
        low, high = dtype.range()
        exact = np.clip(exact, low, high)
    return exact.astype(str(dtype.element_of))


@value_op(
    GROUP,
    "x, y, mask=None, saturate=False, out_sign=None, r=None",
    typed_add,
    c=[("saturate", "__vadds({r}, {x}, {y}, {m})"), ("all_true", "({x} + {y})"), "__vadd({r}, {x}, {y}, {m})"],
    r="param",
)
def vadd(x: Any, y: Any, dtype: Any, saturate: bool = False) -> Any:
    """Lane-wise addition.

    `x + y`, wrapping in the result type, or clipped to its range with `saturate`. Floating-point: one rounding.
    Inactive lanes take `r`; without `r` the mask is ignored.
    """
    if dtype.is_floating:
        return x + y
    return wrap_or_clip(x.astype(np.int64) + y.astype(np.int64), dtype, saturate)
