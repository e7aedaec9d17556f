"""Python operators on run-time values: matching, checks and the IR they build (language rules of operators)."""

from __future__ import annotations

from typing import Any

from compass_core.operators import is_power_of_two

from ...ir import exprs as E
from ...ir.dtypes import BOOL, INT32, DataType
from ...ir.folding import fold
from ...ops import get
from ...ops.core import convert, scalar_cast
from ...ops.typing import NO_FLOAT, Operand, bits_of, check_operator, describe, is_literal, match_operator
from ..python_operators import BINARY, PREFIX
from ..tiles.tile import Tile
from ..tiles.tile import binary as tile_binary
from .errors import language_error
from .values import (
    BufferValue,
    Constant,
    PointerValue,
    Value,
    index_expr,
    is_runtime,
    kind_name,
    literal_expr,
    plain,
    unwrap,
)

_POINTERS = "a pointer can be moved by an integer with + and -, compared, and subscripted"
ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div", "//": "div", "%": "mod"}
FLOORING = {"//": "floordiv", "%": "floormod"}
"""`//` and `%` on a scalar and a literal power of two; on other operands they truncate towards zero."""
BITWISE = {"&": "bitand", "|": "bitor", "^": "bitxor"}
SHIFTS = {"<<": "shl", ">>": "shr"}
COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def as_operand(x: object) -> Operand:
    """The typing rules' view of a value: its DataType, or the literal."""
    if isinstance(x, Value):
        return x.dtype
    if is_literal(x):
        return x
    raise language_error("operand", f"an operator cannot take {kind_name(x)}", "use numbers, variables and expressions")


_NUMBERS = frozenset((Value, int, float, bool))


def binary(symbol: str, a: Any, b: Any, adapt: bool = True) -> Any:
    """`a symbol b`. Plain Python when neither side is a run-time value; `adapt` gives int literals the other's type."""
    if (type(a) is not Value or type(b) not in _NUMBERS) and (type(b) is not Value or type(a) not in _NUMBERS):
        found = _of_others(symbol, a, b, adapt)
        if found is not NotImplemented:
            return found
    x, y = as_operand(a), as_operand(b)
    if symbol in SHIFTS:
        return _shift(symbol, a, b, x, y)
    if symbol in COMPARE:
        return _compare(symbol, a, b, x, y, adapt)
    t = match_operator(x, y, adapt)
    if symbol == "**":
        check_operator("**", t, None)
        return Value(_pow(a, b, t))
    op = ARITHMETIC.get(symbol) or BITWISE.get(symbol)
    if op is None:
        raise language_error("operator-type", f"`{symbol}` is not supported on run-time values")
    check_operator(symbol, t, y)
    if symbol in BITWISE:
        a, b = bits_of(a, t), bits_of(b, t)
    left, right = convert_to(a, t), convert_to(b, t)
    if is_literal(b) and type(right) is E.IntImm and is_power_of_two(right.value):
        op = FLOORING.get(symbol, op)
    return Value(E.Binary(op, left, right))


def _of_others(symbol: str, a: Any, b: object, adapt: bool) -> object:
    """An operator on operands of which none is a number of the run; NotImplemented where one stands for such a number."""
    if not (is_runtime(a) or is_runtime(b)):
        return BINARY[symbol](a, b)
    if isinstance(a, Tile) or isinstance(b, Tile):
        return tile_binary(symbol, a, b)
    if (isinstance(a, Constant) or isinstance(b, Constant)) and not is_runtime_beside(a, b):
        return _of_constants(symbol, a, b, adapt)
    a, b = _address(a), _address(b)
    if isinstance(a, PointerValue) or isinstance(b, PointerValue):
        return _pointer(symbol, a, b)
    if symbol == "*" and isinstance(a, (list, tuple)):
        raise language_error("operand", "a list cannot be repeated a run-time number of times")
    return NotImplemented


def is_runtime_beside(a: object, b: object) -> bool:
    """Whether an operand is known only when the kernel runs."""
    return (is_runtime(a) and not isinstance(a, Constant)) or (is_runtime(b) and not isinstance(b, Constant))


def _of_constants(symbol: str, a: object, b: object, adapt: bool) -> object:
    """An operator on constants and Python values: the number that it gives when the kernel runs."""
    if not (is_number(a) and is_number(b)):
        return BINARY[symbol](plain(a), plain(b))
    x, y = (Value(v.expr) if isinstance(v, Constant) else v for v in (a, b))
    found = binary(symbol, x, y, adapt)
    e = found.expr
    if not (isinstance(e, E.Binary) and isinstance(e.a, E.IntImm) and isinstance(e.b, E.IntImm)):
        return Constant(e) if isinstance(e, E.IntImm) else found

    value = fold(e.op, e.a.value, e.b.value, e.a.dtype)
    if value is None:
        return found
    return bool(value) if symbol in COMPARE else Constant(E.IntImm(e.data_type, value))


def is_number(x: object) -> bool:
    return isinstance(x, Constant) or is_literal(x)


def convert_to(x: Any, t: DataType) -> E.Expr:
    """A value or literal converted to `t` by the operators' implicit conversion."""
    if is_literal(x):
        return convert(x, t)
    if x.dtype.is_vector and x.dtype is not t:
        return get("cast").expr(x.expr, t)
    return convert(x.expr, t)


def _pow(a: object, b: object, t: DataType) -> E.Expr:
    if not t.is_floating:
        raise language_error(
            "operator-type",
            f"`**` needs a floating-point type, got {t}",
            "multiply, as in x * x, or convert with S.fp32(...)",
        )
    return get("pow").expr(convert_to(a, t), convert_to(b, t))


def _shift(symbol: str, a: Any, b: Any, x: Operand, y: Any) -> Value:
    left = literal_expr(a) if is_literal(a) else a.expr
    for side in (left.dtype, literal_expr(b).dtype if is_literal(b) else y):
        if not side.is_integer:
            raise language_error("operator-type", f"`{symbol}` needs integers, got {side}", NO_FLOAT)
    t = left.data_type
    if not is_literal(b) and y.is_vector:
        if t.is_vector and t.lanes != y.lanes:
            raise language_error(
                "lanes-mismatch",
                f"the operands have different lanes: {t} and {y}",
                "shift by a scalar or by a vector of the same lanes",
            )
        t = t.with_lanes(y.lanes)
    if t.is_scalar and is_literal(b) and not 0 <= b < t.bits:
        raise language_error(
            "shift-range", f"shift amount {b} is outside 0..{t.bits - 1} of {t} ({t.bits} bits)", "shift a wider type"
        )
    if is_literal(b) and b == 0:
        return Value(convert(left, t))
    amount = convert(scalar_cast(literal_expr(b), t.element_of), t) if is_literal(b) else convert_to(b, t)
    return Value(E.Binary(SHIFTS[symbol], convert(left, t), amount))


def _compare(symbol: str, a: object, b: object, x: Operand, y: Operand, adapt: bool) -> Value:
    t = match_operator(x, y, adapt)
    check_operator(symbol, t, None)
    tx, ty = _own_type(x, y, adapt), _own_type(y, x, adapt)
    if tx.is_integer and ty.is_integer and not (tx.is_bool or ty.is_bool) and tx.is_int != ty.is_int:
        signed, unsigned = (tx, ty) if tx.is_int else (ty, tx)
        if unsigned.bits >= signed.bits:
            raise language_error(
                "signed-compare",
                f"`{symbol}` compares signed with unsigned: {describe(x)} and {describe(y)}",
                "convert one of them explicitly, e.g. with S.i32(...) or S.u32(...)",
                f"as unsigned, -1 would be larger than every {signed} value",
            )
    return Value(E.Binary(COMPARE[symbol], convert_to(a, t), convert_to(b, t)))


def _own_type(x: Operand, other: Operand, adapt: bool) -> DataType:
    """The element type an operand has in a comparison, after literal adaptation."""
    if not is_literal(x):
        return x.element_of
    if adapt and not is_literal(other) and other.is_integer and type(x) is not float:
        low, high = other.range()
        if low <= x <= high:
            return other.element_of
    return BOOL if type(x) is bool else INT32 if type(x) is int else match_operator(x, x)


def _address(x: object) -> object:
    """A constant table as the pointer that it is, too."""
    return x.addr_of(0) if isinstance(x, BufferValue) and x.scope == "constant" else x


def _pointer(symbol: str, a: PointerValue, b: object) -> object:
    if symbol in COMPARE:
        if not (isinstance(a, PointerValue) and isinstance(b, PointerValue)):
            raise language_error(
                "pointer-compare", "a pointer can only be compared with a pointer", "use p.is_nullptr to test for null"
            )
        return Value(E.Binary(COMPARE[symbol], a.expr, b.expr))
    if symbol == "+" and isinstance(b, PointerValue) and not isinstance(a, PointerValue):
        a, b = b, a
    if symbol not in "+-" or isinstance(b, PointerValue) or not isinstance(a, PointerValue):
        raise language_error("pointer-operator", f"`{symbol}` is not supported on pointers", _POINTERS)
    step = index_expr(b, "pointer step")
    if symbol == "-":
        step = (
            E.IntImm(INT32, -step.value)
            if type(step) is E.IntImm
            else E.Binary("mul", convert(step, INT32), E.IntImm(INT32, -1))
        )
    return a.moved(step)


def unary(symbol: str, a: object) -> Any:
    """`symbol a` for -, ~, not, +."""
    if not is_runtime(a):
        return PREFIX[symbol](a)
    if not isinstance(a, Value):
        raise language_error(
            "operand",
            f"`{symbol}` is not supported on {kind_name(a)}",
            "use p.is_nullptr to test for null" if symbol == "not" else "",
        )
    t = a.dtype
    if isinstance(a, Constant) and symbol in ("not", "~"):
        return not a.plain if symbol == "not" else binary("^", a, -1)
    if symbol == "-":
        check_operator("-", t, None)
        if t.is_uint:
            raise language_error("operator-type", f"`-` on unsigned {t}", "convert to a signed type first")
        return binary("*", a, -1)
    if symbol == "~":
        if not t.is_integer:
            raise language_error("operator-type", f"`~` needs integers or masks, got {t}", NO_FLOAT)
        return Value(E.Unary("bitnot", a.expr))
    if symbol == "not":
        if t is not BOOL:
            raise language_error(
                "bool-operator", f"`not` needs a bool, got {t}", "compare with 0" if t.is_scalar else "use ~ on masks"
            )
        return Value(E.Unary("not", a.expr))
    raise language_error("operator-type", "unary `+` is not supported on run-time values", "leave it out")


def is_none(x: object) -> Value | bool:
    """`x is None`: of a pointer whether the host passed None, a run-time bool; a number never is."""
    if isinstance(x, BufferValue):
        return x.addr_of(0).is_nullptr
    return x.is_nullptr if isinstance(x, PointerValue) else False


def logical(symbol: str, a: object, b: object) -> Any:
    """`a and b`, `a or b`."""
    a, b = plain(a), plain(b)
    if not (is_runtime(a) or is_runtime(b)):
        return (a and b) if symbol == "and" else (a or b)
    sides = []
    for x in (a, b):
        if type(x) is bool:
            sides.append(literal_expr(x))
        elif isinstance(x, Value) and x.dtype is BOOL:
            sides.append(x.expr)
        elif isinstance(x, Value) and x.dtype.is_vector:
            raise language_error(
                "bool-operator", f"`{symbol}` needs scalar bools, got {x.dtype}", "use & and | on masks"
            )
        else:
            shown = x.dtype if isinstance(x, Value) else kind_name(x)
            raise language_error(
                "bool-operator", f"`{symbol}` needs bools, got {shown}", "compare with 0, or use p.is_nullptr"
            )
    return Value(E.Binary(symbol, sides[0], sides[1]))


def _lanewise(mask: Value, a: object, b: object) -> Value:
    """`a if mask else b`: S.vsel of both."""
    kinds = [as_operand(x) for x in (a, b)]
    if not any(isinstance(kind, DataType) and kind.is_vector for kind in kinds):
        raise language_error(
            "operand",
            "`a if mask else b` chooses lane by lane, so that one of the two is a vector",
            "fill one with S.vbcast; of one condition for all lanes, S.vany(mask) and S.vall(mask) tell",
        )
    return Value(get("vsel").expr(unwrap(a), unwrap(b), mask.expr))


def _instead_of_choosing(x: object) -> str:
    """What to write where a value cannot be chosen by a condition of the run."""
    if isinstance(x, PointerValue):
        return "assign in an `if`: `p = a`, then `if c:` `p = b`; or choose the distance from one pointer"
    if isinstance(x, Tile):
        return "write S.tile_where, or the `if` around what is done with it"
    if isinstance(x, (str, list, tuple, type(None))):
        return "a mask that depends on the run is an expression, such as S.tail_mask(n, lanes) or v > 3"
    return "it takes numbers, vectors and masks; else write an `if`"


def ternary(cond: Value, a: object, b: object) -> Any:
    """`a if cond else b`."""
    if not is_runtime(cond):
        return a if cond else b
    if isinstance(cond, Value) and cond.dtype.is_mask:
        return _lanewise(cond, a, b)
    if not (isinstance(cond, Value) and cond.dtype is BOOL):
        shown = cond.dtype if isinstance(cond, Value) else kind_name(cond)
        raise language_error(
            "condition",
            f"the condition of `a if c else b` must be a scalar bool or a mask, got {shown}",
            "compare explicitly, as in n != 0",
        )
    for x in (a, b):
        if not isinstance(x, Value) and not is_literal(x):
            raise language_error(
                "operand",
                f"`a if c else b` of a run-time condition cannot take {kind_name(x)}",
                _instead_of_choosing(x),
            )
    t = match_operator(as_operand(a), as_operand(b), adapt=False)
    return Value(E.Select(cond.expr, convert_to(a, t), convert_to(b, t)))
