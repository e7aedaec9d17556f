"""Operators of expressions, which match the types of their operands and fold constants. The constructors of nodes do neither.

The result type of an operator follows from the types of its operands (`matched`): of two floats the wider, a float
beside an integer, of two integers the wider, and the unsigned one where they are as wide. A Python number is int32
(int64 where it does not fit), float32 or bool; it does not adopt the type of the other operand, but in `& | ^ << >>`.
"""

from __future__ import annotations

import math
from typing import Any

from compass_core.operators import OPERATORS

from . import exprs as E
from .dtypes import BOOL, FLOAT32, INT32, VOID, DataType, DTypeError, dtype
from .errors import ExpressionError, ExpressionTypeError
from .expr_op import ExprOp
from .exprs import Binary, Expr, FloatImm, IntImm
from .folding import ABSORBING, NEUTRAL, fold

INT64 = dtype("int64")
_BITWISE = frozenset("bitand bitor bitxor shl shr".split())
_FOLDED_FLOATS = ("float32", "float64")


# ---------------------------------------------------------------------------------------------------------- conversion


def immediate(value: float, kind: DataType) -> Expr:
    """A number of a type. ExpressionError when the type cannot hold it."""
    if kind.is_bool:
        return IntImm(BOOL, int(bool(value)))
    if kind.is_integer:
        low, high = kind.range()
        if not low <= value <= high:
            raise ExpressionError(f"{value} does not fit {kind}, which holds {int(low)} to {int(high)}")
        return IntImm(kind, int(value))
    return FloatImm(kind, float(value))


def kind_of(e: Expr) -> DataType:
    """The type of a number. ExpressionTypeError for an address, and for a call without a value."""
    if not isinstance(e.dtype, DataType):
        raise ExpressionTypeError("an address is no number")
    if e.dtype is VOID:
        raise ExpressionTypeError(f"{e} has no value", "such a call is a statement, of te.extern for example")
    return e.dtype


def const(value: float, dtype: object = None) -> Expr:
    """A number as a value: int32, float32 or bool, or of the type that `dtype` names."""
    return as_expr(value) if dtype is None else immediate(value, data_type(dtype))


def data_type(kind: object) -> DataType:
    """The type that a name or a NumPy dtype means; ExpressionTypeError when there is none."""
    try:
        return dtype(kind)
    except DTypeError as error:
        raise ExpressionTypeError(error.message, error.help) from None
    except TypeError:  # what cannot be looked up
        raise ExpressionTypeError(f"a type is a name such as 'int8', got a {type(kind).__name__}") from None


def as_expr(value: Any) -> Expr:
    """The expression of an operand or of a Python number. ExpressionTypeError for anything else."""
    if isinstance(value, ExprOp):
        return value.as_expr()
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return immediate(value.item(), data_type(value.dtype))
    if isinstance(value, bool):
        return IntImm(BOOL, int(value))
    if isinstance(value, int):
        return IntImm(INT32 if -(2**31) <= value < 2**31 else INT64, value)
    if isinstance(value, float):
        return FloatImm(FLOAT32, value)
    raise ExpressionTypeError(f"expected a value or a number, got {type(value).__name__}")


def cast(value: object, dtype: object) -> Expr:
    """`value` converted to a type by the rules of C."""
    e, to = as_expr(value), data_type(dtype)
    if e.dtype is to:
        return e
    if isinstance(e, IntImm) and to.is_integer and not to.is_bool:
        low, high = to.range()
        if low <= e.value <= high:
            return IntImm(to, e.value)
    if isinstance(e, (IntImm, FloatImm)) and to is FLOAT32 and is_float32(e.value):
        return FloatImm(to, float(e.value))
    if to.is_bool:
        return binary("ne", e, immediate(0, kind_of(e)))
    return E.Cast(to, e)


def is_float32(value: float) -> bool:
    """Whether float32 has a number."""
    import numpy as np

    return float(np.float32(value)) == value


# ----------------------------------------------------------------------------------------------------------- operators


def matched(a: DataType, b: DataType, what: str) -> DataType:
    """The type that an operator computes in. ExpressionTypeError for vectors of different lanes."""
    if a is b:
        return a
    if not a.is_scalar or not b.is_scalar:
        raise ExpressionTypeError(f"{what} of {a} and {b}: tensor expressions are made of scalars")
    if a.is_floating and b.is_floating:
        if a.is_bfloat != b.is_bfloat:
            return b if a.is_bfloat else a
        return a if a.bits >= b.bits else b
    if a.is_floating or b.is_floating:
        return a if a.is_floating else b
    if a.is_bool or b.is_bool:
        return b if a.is_bool else a
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return a if a.is_uint else b


def binary(op: str, left: object, right: object) -> Expr:
    """An operator on two values, in the type that both match; constants are folded."""
    a, b = as_expr(left), as_expr(right)
    if op in _BITWISE:
        a, b = _adopted(a, left, b), _adopted(b, right, a)
    kind = kind_of(a) if op in ("shl", "shr") else matched(kind_of(a), kind_of(b), op)
    _check(op, kind, a, b)
    a, b = cast(a, kind), cast(b, kind)
    known = _folded(op, a, b)
    if known is not None:
        return known
    return _logical(op, a, b) if kind.is_bool else Binary(op, a, b)


def negative(operand: object) -> Expr:
    """`-x`: `0 - x`, of reals `-0.0 - x`, which turns the sign of zeros, too."""
    e = as_expr(operand)
    kind = kind_of(e)
    return binary("sub", immediate(-0.0 if kind.is_floating else 0, kind), e)


def inverted(operand: object) -> Expr:
    """`~x`: the other bits of a whole number, the other truth of a bool."""
    e = as_expr(operand)
    if not e.dtype.is_integer:
        raise ExpressionTypeError(f"~ needs whole numbers or bools, got {e.dtype}")
    return E.Unary("not" if e.dtype.is_bool else "bitnot", e)


_LOGICAL = {"add": "or", "max": "or", "bitor": "or", "mul": "and", "min": "and", "bitand": "and", "bitxor": "ne"}
"""What operators are of bools, as NumPy has it."""
_ORDER = {"lt": ("and", "a"), "le": ("or", "a"), "gt": ("and", "b"), "ge": ("or", "b")}
"""Comparisons of bools: how they are joined, and which of them is negated."""


def _logical(op: str, a: Expr, b: Expr) -> Expr:
    """An operator of two bools by `and`, `or`, `not` and `ne`, which each target has."""
    if op in _ORDER:
        joined, negated = _ORDER[op]
        return Binary(joined, _not(a), b) if negated == "a" else Binary(joined, a, _not(b))
    if op == "eq":
        return _not(Binary("ne", a, b))
    op = _LOGICAL.get(op, op)
    if op not in ("and", "or", "ne"):
        raise ExpressionTypeError(f"there is no {op} of bools", "cast them to int8; `^` says where they differ")
    if op == "ne" and isinstance(b, IntImm):
        return _not(a) if b.value else a
    return Binary(op, a, b)


def _not(e: Expr) -> Expr:
    return E.Unary("not", e)


def _adopted(e: Expr, given: object, other: Expr) -> Expr:
    """A Python number beside a bitwise operator takes the other operand's type."""
    return immediate(given, kind_of(other)) if type(given) is int and other.dtype.is_integer else e


def _check(op: str, kind: DataType, a: Expr, b: Expr) -> None:
    if (op in _BITWISE or op in ("div", "mod", "floordiv", "floormod")) and not kind.is_integer:
        raise ExpressionTypeError(f"{op} needs whole numbers, got {a.dtype} and {b.dtype}")
    if op in E.COMPARISON and a.dtype.is_integer and b.dtype.is_integer and not isinstance(a, IntImm):
        signed, unsigned = (a.dtype, b.dtype) if a.dtype.is_int else (b.dtype, a.dtype)
        mixed = signed.is_int and unsigned.is_uint and unsigned.bits >= signed.bits
        if mixed and not isinstance(b, IntImm):
            raise ExpressionTypeError(f"cannot compare {a.dtype} with {b.dtype}: cast one of them")
    if op in ("div", "mod", "floordiv", "floormod") and isinstance(b, IntImm) and b.value == 0:
        raise ExpressionError("division by zero")
    if op in ("shl", "shr") and isinstance(b, IntImm) and not 0 <= b.value < kind.bits:
        raise ExpressionError(f"{kind} is shifted by {b.value}, possible are 0 to {kind.bits - 1}")
    if kind.is_bfloat:
        raise ExpressionTypeError(f"there is no {op} of bfloat16", "cast to float32")


def _folded(op: str, a: Expr, b: Expr) -> Expr | None:
    """The result where it is known: two constants, `x + 0`, `x * 1`, `x * 0` of whole numbers."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return _fold_integers(op, a, b)
    if isinstance(a, FloatImm) and isinstance(b, FloatImm) and a.dtype in _FOLDED_FLOATS:
        return _fold_floats(op, a, b)
    for this, other in ((b, a), (a, b)) if op in E.COMMUTATIVE else ((b, a),):
        if not isinstance(this, (IntImm, FloatImm)):
            continue
        whole = isinstance(this, IntImm)
        if this.value == NEUTRAL.get(op) and (whole or this.value):  # adding 0.0 changes -0.0
            return other
        if whole and this.value == ABSORBING.get(op):
            return this
    return None


def _fold_integers(op: str, a: IntImm, b: IntImm) -> Expr | None:
    value = fold(op, a.value, b.value, a.dtype)
    return None if value is None else IntImm(BOOL if OPERATORS[op].truth else a.dtype, value)


def _fold_floats(op: str, a: FloatImm, b: FloatImm) -> Expr | None:
    import numpy as np

    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}.get(op)
    if function is None:
        return None
    kind = np.dtype(str(a.dtype)).type
    with np.errstate(all="ignore"):
        value = float(function(kind(a.value), kind(b.value)))
    return FloatImm(a.dtype, value) if math.isfinite(value) else None


def divide(left: object, right: object) -> Expr:
    """`a / b` of reals. ExpressionTypeError for whole numbers, whose quotient may be meant in two ways."""
    a, b = as_expr(left), as_expr(right)
    if not a.dtype.is_floating and not b.dtype.is_floating:
        raise ExpressionTypeError(
            f"`/` of {a.dtype} and {b.dtype} is ambiguous", "use `//` (rounds down), te.truncdiv, or cast to float32"
        )
    return _float_quotient(left, right)


def _float_quotient(left: object, right: object) -> Expr:
    a, b = as_expr(left), as_expr(right)
    kind = matched(kind_of(a), kind_of(b), "/")
    if kind.is_bfloat:
        raise ExpressionTypeError("there is no division of bfloat16", "cast to float32")
    if isinstance(b, (IntImm, FloatImm)) and b.value == 0:
        raise ExpressionError("division by zero")
    a, b = cast(a, kind), cast(b, kind)
    known = _folded("div", a, b)
    return Binary("div", a, b) if known is None else known
