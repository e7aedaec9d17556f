"""Atomic operations on integers in memory that several TECs share. They are ours; in C they have OpenCL's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir.dtypes import INT32, UINT32, DataType
from .args import int_arg, pointer_arg
from .core import Cost, Op, Part, Touch, imm, scalar_cast, special_op
from .example import Example
from .typing import check_literal, is_literal, type_error

GROUP = "Atomic memory"
BOTH = (Touch(0, "r", 4), Touch(0, "w", 4))
IN_MEMORY: Mapping[Part, str] = {"definition": "it changes memory: tests/agreement/test_atomics.py compares that"}
_EXAMPLE = 'sh = S.alloc(1, "i32", "shared")\nif S.get_local_id() == 0:\n    sh[0] = {start}\nS.barrier()\n{call}\nS.barrier()\nout[0] = sh[0]'


def check_place(what: str, elem: DataType, scope: str) -> None:
    """Refuse memory that atomic operations do not reach."""
    if scope != "shared" and not scope.startswith("global") or scope == "global.1":
        raise CompassError(
            f"{what}: the pointer is to {scope} memory, which other TECs do not write",
            code="atomic-scope",
            help="atomic operations are for shared and global memory; a TEC's own needs none: p[i] += x",
        )
    if elem not in (INT32, UINT32):
        raise type_error(f"{what}: the pointer is to {elem}; int32 and uint32 are possible", _without(elem))


def _without(elem: DataType) -> str:
    """What to do where the elements have no atomic operations."""
    if elem.is_floating:
        return (
            "let each TEC keep what it finds in an element of its own, p[S.get_local_id()], and join these after S.barrier(); "
            "or count in integers, as in S.i32(x * 65536.0)"
        )
    return f"keep the values as {UINT32 if elem.is_uint else INT32}"


def _place(what: str, ptr: object) -> E.Expr:
    address = pointer_arg(ptr, f"{what}: ptr")
    check_place(what, address.pointer_type.elem, address.pointer_type.scope)
    return address


def _operand(what: str, x: object, to: DataType) -> E.Expr:
    """A value as the element type of the memory."""
    if is_literal(x) and type(x) is int:
        check_literal(x, to)
        return imm(x, to)
    return scalar_cast(int_arg(x, what), to)


def _call(name: str, ptr: object, *values: tuple[str, object]) -> E.Expr:
    address = _place(f"S.{name}", ptr)
    elem = address.pointer_type.elem
    operands = [_operand(f"S.{name}: {word}", x, elem) for word, x in values]
    return E.Call(name, (address, *operands), elem)


def _atomic(c: str, start: str, call: str) -> Callable[[Callable[..., E.Expr]], Op]:
    """Declares an atomic operation: its C text, and what its example begins with and does."""
    return special_op(
        group=GROUP,
        c=c,
        effect="write",
        touches=BOTH,
        cost=Cost("atomic"),
        returns="Value",
        example=Example(_EXAMPLE.replace("{start}", start).replace("{call}", call), lanes=1),
        exempt=IN_MEMORY,
    )


@_atomic("atomic_add({ptr}, {value})", "x[0]", "S.atomic_add(sh, S.get_local_id())")
def atomic_add(ptr: object, value: object) -> E.Expr:
    """Add `value` to the integer at `ptr` in one step, and give what it was before. Ours.

    The memory is int32 or uint32, shared or global. Sums wrap. No other TEC's atomic operation on this integer comes
    between reading and writing it; plain accesses to it by other TECs need a barrier between.
    """
    return _call("atomic_add", ptr, ("value", value))


@_atomic("atomic_min({ptr}, {value})", "x[0]", "S.atomic_min(sh, S.get_local_id())")
def atomic_min(ptr: object, value: object) -> E.Expr:
    """Replace the integer at `ptr` by `value` where that is less, in one step, and give what it was before. Ours.

    Otherwise as `S.atomic_add`.
    """
    return _call("atomic_min", ptr, ("value", value))


@_atomic("atomic_max({ptr}, {value})", "x[1]", "S.atomic_max(sh, S.get_local_id())")
def atomic_max(ptr: object, value: object) -> E.Expr:
    """Replace the integer at `ptr` by `value` where that is greater, in one step, and give what it was before. Ours.

    Otherwise as `S.atomic_add`.
    """
    return _call("atomic_max", ptr, ("value", value))


@_atomic("atomic_xchg({ptr}, {value})", "x[0]", "if S.get_local_id() == 0:\n    S.atomic_exchange(sh, 7)")
def atomic_exchange(ptr: object, value: object) -> E.Expr:
    """Replace the integer at `ptr` by `value` in one step, and give what it was before. Ours.

    Otherwise as `S.atomic_add`.
    """
    return _call("atomic_exchange", ptr, ("value", value))


@_atomic("atomic_cmpxchg({ptr}, {expected}, {value})", "5", "S.atomic_compare_exchange(sh, 5, 7)")
def atomic_compare_exchange(ptr: object, expected: object, value: object) -> E.Expr:
    """Replace the integer at `ptr` by `value` if it is `expected`, in one step, and give what it was before. Ours.

    It was replaced where the result equals `expected`. Otherwise as `S.atomic_add`.
    """
    return _call("atomic_compare_exchange", ptr, ("expected", expected), ("value", value))
