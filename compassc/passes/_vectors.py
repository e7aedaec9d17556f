"""Small builders and tests that the vector passes of legalisation share."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeGuard

from ..analysis.statements import is_const
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import INT32, VOID, DataType


@lru_cache(maxsize=4096)
def int32(value: int) -> E.IntImm:
    return E.IntImm(INT32, value)


def is_call(e: E.Expr, *ops: str) -> TypeGuard[E.Call]:
    return type(e) is E.Call and e.op in ops


def is_constant(e: E.Expr) -> bool:
    """A constant mask, or one constant in every lane."""
    return type(e) is E.ConstMask or (type(e) is E.Broadcast and isinstance(e.value, (E.IntImm, E.FloatImm)))


def is_all_true(mask: E.Expr | None) -> bool:
    return mask is None or (type(mask) is E.ConstMask and mask.all_true)


def active(mask: E.Expr | None) -> E.Expr | None:
    """A mask as a call holds it: None when every lane is known to be active."""
    return None if is_all_true(mask) else mask


def zero(dtype: DataType) -> E.Expr:
    """A value of 0 in every lane; for masks, no lane."""
    if dtype.is_mask:
        return E.ConstMask(0, dtype.lanes)
    element = dtype.element_of
    imm = E.FloatImm(element, 0.0) if element.is_floating else E.IntImm(element, 0)
    return imm if dtype.is_scalar else E.Broadcast(imm, dtype.lanes)


def first_lanes(count: int, lanes: int) -> E.ConstMask:
    """The constant mask whose first `count` of `lanes` lanes are active."""
    return E.ConstMask((1 << count) - 1, lanes)


def add_offset(offset: E.Expr, amount: E.Expr) -> E.Expr:
    """`offset + amount` with constants folded, in the type of the amount: that of the offset may be too narrow."""
    if is_const(amount, 0):
        return offset
    if is_const(offset, 0):
        return amount
    if type(offset) is E.IntImm and type(amount) is E.IntImm:
        return E.IntImm(amount.dtype, offset.value + amount.value)
    return E.Binary("add", offset if offset.dtype is amount.dtype else E.Cast(amount.data_type, offset), amount)


def times(factor: int, e: E.Expr) -> E.Expr:
    if type(e) is E.IntImm:
        return E.IntImm(e.dtype, e.value * factor)
    return e if factor == 1 else E.Binary("mul", e, E.IntImm(e.data_type, factor))


def builtin(name: str, *args: E.Expr, dtype: Any, mask: E.Expr | None = None) -> E.Call:
    return E.Call(name, args, dtype, mask)


def cast(args: tuple[E.Expr, ...], dtype: DataType, part: str = "all", saturate: bool | None = False) -> E.Call:
    """A vector conversion of one or more registers."""
    return E.Call("cast", args, dtype, attrs=(("part", part), ("saturate", saturate)))


def reinterpret(e: E.Expr, dtype: DataType) -> E.Expr:
    """The bits of `e` as another type."""
    if e.dtype is dtype:
        return e
    return E.Reinterpret(dtype, e.value if type(e) is E.Reinterpret else e)


def vstore(value: E.Expr, pointer: E.Expr, mask: E.Expr | None = None) -> S.Stmt:
    return S.Evaluate(E.Call("vstore", (value, pointer, int32(1)), VOID, mask))


def wide_function(f: S.PrimFunc) -> bool:
    """Whether a function has a vector that is not exactly one register."""
    if any(p.flags & E.F_WIDE for p in f.params) or _is_wide_type(f.ret_type):
        return True
    stack = [f.body]
    while stack:
        for s in stack.pop():
            for e in s.exprs():
                if e.flags & E.F_WIDE:
                    return True
            stack.extend(b for b in s.bodies() if b)
    return False


def _is_wide_type(t: Any) -> bool:
    return t.is_vector and not t.is_native
