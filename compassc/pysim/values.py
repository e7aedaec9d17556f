"""PyVar: a typed scalar, vector or mask of a running PySim kernel, with the operators of the kernel language.

`value` is a NumPy scalar for scalars and a 1-D array for vectors and masks. Python literals stay Python numbers until
they meet a typed value; scalar bools are plain Python bools. Which types an operator converts to is decided once per
combination of operand types by the rules the compiler uses (`compassc.ops.typing.match_operator`) and kept as a plan.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, SupportsIndex, TypeAlias, cast

import numpy as np

from compass_core import operators
from compass_core.arrays import Array, NumpyDType
from compass_core.errors import CompassError
from compassc.ir.dtypes import FLOAT32, INT32, DataType, bool_of, dtype
from compassc.ops.convert import check_pair
from compassc.ops.core import get
from compassc.ops.numeric import convert, literal, np_dtype
from compassc.ops.typing import (
    Operand,
    bits_of,
    check_conversion,
    check_literal,
    check_operator,
    is_literal,
    literal_dtype,
    match_operator,
    type_error,
)

from ..language.specs import VALUE_ATTRIBUTES
from .checks import PLANS, arithmetic_checked, check_narrowing
from .fast_paths import Function, quotient
from .meanings import meaning_of

PINNED: set[bool] = set()
"""Not empty once the address of any variable was taken: while it is empty, `PyVar.pinned` need not be checked."""


Conversion: TypeAlias = "Callable[[Array], Array] | Array | None"
"""How an operand becomes the element type: a function of its value, the value itself of a constant, or not at all."""


class PyVar:
    """A typed value. The constructor trusts its arguments; `pyvar` converts."""

    # `pinned` is only set once the address was taken, `known` of a value that is known while a kernel is compiled
    __slots__ = ("dtype", "known", "pinned", "value")
    known: bool
    attributes = VALUE_ATTRIBUTES
    addr: ClassVar[property]  # `memory.address_of`: the pointer, which is made of values
    __array_priority__ = 1000.0  # NumPy operands leave the operator to this class

    def __hash__(self) -> int:
        """That of the Python number that a scalar equals, so that it finds the items of dictionaries."""
        if self.dtype.is_vector:
            raise TypeError(f"{self.dtype} cannot be the key of a dictionary")
        return hash(self.value.item())

    def __init__(self, value: Array, dtype: DataType) -> None:
        self.value = value
        self.dtype = dtype

    def __repr__(self) -> str:
        """Type, values and bits, as a debugger shows a variable."""
        if self.dtype.is_bool:
            return f"{self.dtype}({self})"
        bits = self.hex
        return f"{self.dtype}({self}, {bits if type(bits) is str else ' '.join(bits)})"

    def __str__(self) -> str:
        """The values, as `print` shows them."""
        return str(self.value.tolist()) if not self.dtype.is_bool else "".join("FT"[int(b)] for b in self.value)

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        lanes = [format(x, spec) for x in np.asarray(self.value).reshape(-1).tolist()]
        return lanes[0] if self.dtype.is_scalar else f"[{', '.join(lanes)}]"

    # ------------------------------------------------------------------------------------------- access

    def __bool__(self) -> bool:
        if self.dtype.is_vector:
            raise type_error(f"{self.dtype} has no truth value", "use S.vall or S.vany on a mask")
        return bool(self.value != 0)

    def __index__(self) -> int:
        if not (self.dtype.is_scalar and self.dtype.is_integer):
            raise TypeError(f"{self.dtype} is not an integer; convert it explicitly")
        return int(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, dtype: NumpyDType | None = None, copy: bool | None = None) -> Array:
        return np.array(self.value, dtype=dtype)

    def __len__(self) -> int:
        if self.dtype.is_scalar:
            raise TypeError(f"{self.dtype} has no lanes")
        return self.dtype.lanes

    def _lane(self, index: object) -> int:
        if self.dtype.is_scalar:
            raise type_error(f"a scalar {self.dtype} cannot be indexed", "use it without an index")
        try:
            lane = operator.index(cast(SupportsIndex, index))
        except TypeError:
            raise type_error(
                f"a lane index must be an integer, got {index!r}",
                "take parts of a vector with S.vxtl, S.vxth or S.vsplit",
            ) from None
        if not 0 <= lane < self.dtype.lanes:
            raise CompassError(
                f"lane {lane} of {self.dtype}: it has lanes 0 to {self.dtype.lanes - 1}",
                code="bounds",
                help="lanes count from 0",
            )
        return lane

    def __getitem__(self, index: object) -> PyVar | bool:
        item = self.value[self._lane(index)]
        elem = self.dtype.element_of
        return bool(item) if elem.is_bool else PyVar(item, elem)

    def __setitem__(self, index: object, value: object) -> None:
        lane = self._lane(index)
        elem = self.dtype.element_of
        source = value.dtype if type(value) is PyVar else None
        if source is not None and source.is_vector:
            raise type_error(f"{source} cannot be stored in one lane of {self.dtype}", f"give it a scalar {elem}")
        is_float = type(value) is float if source is None else source.is_floating
        if is_float and elem.is_integer:
            what = "float32" if source is None else str(source)
            raise type_error(f"{what} cannot be stored in a lane of {self.dtype}", f"convert it: S.{elem}(...)")
        if not PINNED or not hasattr(self, "pinned"):
            self.value = self.value.copy()  # operations may share arrays between values
        self.value[lane] = to_element(value, elem)

    def pin(self) -> Array:
        """The bytes of the variable's storage, which is not moved from here on because a pointer refers to it."""
        if self.dtype.is_bool:
            raise type_error("the address of a bool cannot be taken", "store 0 or 1 in an int32")
        if not hasattr(self, "pinned"):
            lanes = np.array(self.value).reshape(self.dtype.lanes)
            self.value = lanes if self.dtype.is_vector else lanes.reshape(())
            self.pinned = True
            PINNED.add(True)
        return self.value.reshape(-1).view(np.uint8)

    @property
    def hex(self) -> str | tuple[str, ...]:
        """The bit pattern as hexadecimal text, per lane for vectors."""
        size = self.dtype.bytes
        bits = np.asarray(self.value).reshape(-1).view(f"u{size}")
        texts = tuple(f"0x{int(b):0{2 * size}x}" for b in bits)
        return texts if self.dtype.is_vector else texts[0]

    def copy(self) -> PyVar:
        return PyVar(self.value.copy(), self.dtype)

    # ------------------------------------------------------------------------------------------- operators

    def __neg__(self) -> PyVar:
        check_operator("*" if self.dtype.is_vector else "-", self.dtype, None)
        if self.dtype.is_uint or self.dtype.is_bool:
            raise type_error(f"{self.dtype} cannot be negated", "convert it to a signed type first")
        return PyVar(-self.value, self.dtype)

    def __invert__(self) -> PyVar:
        if self.dtype.is_floating:
            raise type_error(
                f"~ needs an integer or a mask, got {self.dtype}", "convert it to an integer, or S.reinterpret its bits"
            )
        return PyVar(~self.value, self.dtype)

    def __pos__(self) -> NoReturn:
        raise type_error("unary + is not part of the kernel language", "leave it out")


# ------------------------------------------------------------------------------------------------ making values


Scalar: TypeAlias = PyVar | bool
"""What a scalar is while a kernel runs: bools are those of Python."""
Plan: TypeAlias = tuple[Conversion, Conversion, Function, DataType | None]


def scalar_result(value: Array, dt: DataType) -> Scalar:
    """A NumPy scalar as a kernel value: bools become Python bools."""
    return bool(value) if dt.is_bool else PyVar(value, dt)


_LITERAL_TYPES = (int, float, bool)


def python_number(x: object) -> object:
    """A NumPy scalar as the Python number that it is, which is how kernels see it; anything else unchanged."""
    if not isinstance(x, np.generic):
        return x
    found = x.item()
    return found if type(found) in _LITERAL_TYPES else x


def number(x: int, dt: DataType) -> PyVar:
    """A Python integer as a scalar of an integer type."""
    return PyVar(np_dtype(dt).type(x), dt)


def of_numpy(x: object) -> PyVar:
    """A NumPy scalar or 1-D array as a value of its own type."""
    array = np.asarray(x)
    elem = dtype(str(array.dtype))
    return PyVar(array[()] if array.ndim == 0 else array, elem if array.ndim == 0 else elem.with_lanes(array.size))


_LITERALS: dict[tuple[int, DataType], Array] = {}


def to_element(x: object, elem: DataType) -> Array:
    """A scalar value as a NumPy scalar of `elem`, by C conversion."""
    if type(x) is PyVar:
        if x.dtype is elem:
            return x.value
        converted = convert(x.value, x.dtype, elem, scalar=True)[()]
        check_narrowing(x.value, converted, elem)
        return converted
    if type(x) is int:
        found = _LITERALS.get((x, elem))
        if found is None:
            if len(_LITERALS) >= _MAX_PLANS:
                _LITERALS.clear()
            check_literal(x, elem)
            found = _LITERALS[x, elem] = literal(x, elem)
        return found
    if type(x) is float or type(x) is bool:
        return literal(x, elem)
    if (number := python_number(x)) is not x:
        return to_element(number, elem)
    raise type_error(f"{type(x).__name__} is not a scalar value", "give a number or a scalar variable")


def pyvar(x: object, dt: DataType | None = None) -> Scalar:
    """A number, array or value as a fresh kernel value of type `dt` (None: its own type)."""
    if isinstance(x, PyVar):
        source = x
    elif is_literal(x):
        own = (
            dt.element_of if dt is not None else bool_of(1) if type(x) is bool else INT32 if type(x) is int else FLOAT32
        )
        check_conversion(x, own)
        source = PyVar(literal(x, own), own)
    else:
        source = of_numpy(x)
    dt = dt or source.dtype
    if dt.is_scalar:
        if source.dtype.is_vector:
            raise type_error(f"{source.dtype} is not a scalar {dt}", "take one lane: v[i]")
        return scalar_result(to_element(source, dt), dt)
    elem = dt.element_of
    if source.dtype.is_scalar:
        return PyVar(np.full(dt.lanes, to_element(source, elem)), dt)
    if source.dtype.lanes != dt.lanes:
        raise type_error(f"{source.dtype} is not {dt}: the lanes differ", "convert it with S.cast")
    value = convert(source.value, source.dtype, elem)
    return PyVar(value.copy() if value is source.value else value, dt)


# ------------------------------------------------------------------------------------------------ operators


def _scalar_divide(fn: Callable[[int, int], int], kind: NumpyDType) -> Function:
    """C division or remainder of integer scalars, 0 by zero: computed exactly, then cut to the type."""

    make, low, high = kind.type, int(np.iinfo(kind).min), int(np.iinfo(kind).max)

    def run(a: Array, b: Array) -> Array:
        if b == 0:
            found: Array = make(0)
            return found
        value = fn(int(a), int(b))
        found = make(value) if low <= value <= high else np.int64(value).astype(kind)
        return found

    return run


def _scalar_shift(fn: Function, kind: NumpyDType) -> Function:
    """Scalar shifts are done in 32 bits with the amount modulo 32, then brought back."""
    wide = np.uint32 if kind == np.uint32 else np.int32

    def run(a: Array, b: Array) -> Array:
        return fn(wide(a), wide(int(b) & 31)).astype(kind)

    return run


_FUNCTIONS: dict[str, Function] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": quotient,
    "floormod": np.fmod,
    "pow": np.power,  # replaced by S.pow in _plan
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}
_COMPARE = frozenset("lt le gt ge eq ne".split())
_SHIFTS = frozenset(("shl", "shr"))
_BITWISE = frozenset(("bitand", "bitor", "bitxor"))
_SYMBOLS = {
    "div": "/",
    "pow": "**",
    **{name: o.python for name, o in operators.OPERATORS.items() if o.python and name not in _SHIFTS},
}
_DIVIDE = {"div": operators.div, "floordiv": operators.div, "floormod": operators.mod}
"""Python's `/`, `//` and `%` on whole numbers; `_plan` has what they are with a literal power of two."""
_MAX_PLANS = 1024


_NOTHING = np.empty(0)
"""In the place of the value of an operand that is a literal."""


def _operator(op: str, reflected: bool) -> Callable[[PyVar, object], object]:
    """The method of a Python operator. `reflected`: the value is the right operand."""
    plans: dict[object, tuple[Callable[[Array], Array] | None, Conversion, Function, DataType | None]] = {}
    PLANS.append(plans)

    def method(self: PyVar, other: object) -> object:
        if type(other) is PyVar:
            key: object = (self.dtype, other.dtype)
            given = other.value
        else:
            if type(other) not in _LITERAL_TYPES:
                other = python_number(other)
            kind = type(other)
            key = (self.dtype, kind, other if kind is not float or other else str(other))  # -0.0 is not 0.0
            given = _NOTHING
        try:
            mine, theirs, fn, result = plans[key]
        except KeyError:
            plan = _plan(op, other, self) if reflected else _plan(op, self, other)
            if plan is None:
                return NotImplemented
            left, right, fn, result = plan
            own, theirs = (right, left) if reflected else (left, right)
            assert own is None or callable(own), "a variable is no constant"
            mine = own
            if len(plans) >= _MAX_PLANS:
                plans.clear()
            plans[key] = mine, theirs, fn, result
        except TypeError:  # an unhashable operand: a list, an array
            return NotImplemented
        value = self.value
        if mine is not None:
            value = mine(value)
        if theirs is None:
            theirs = given
        elif callable(theirs):
            theirs = theirs(given)
        value = fn(theirs, value) if reflected else fn(value, theirs)
        return bool(value) if result is None else PyVar(value, result)

    return method


def _power(elem: DataType) -> Function:
    """`**` as S.pow computes it."""
    power = meaning_of(get("pow"))
    return lambda x, y: np.asarray(power(np.asarray(x), np.asarray(y), dtype=elem))[()]


def _operand(x: object) -> Operand | None:
    """The operand as the typing rules take it; None if it is not a value."""
    if type(x) is PyVar:
        return x.dtype
    return x if is_literal(x) else None


def _converter(x: object, elem: DataType) -> Conversion:
    """The conversion of an operand to element type `elem`: None (none needed), a function of its array, or the constant."""
    if type(x) is not PyVar:
        return to_element(x, elem)
    source = x.dtype
    if source.element_of is elem:
        return None
    if source.is_vector:
        check_pair(source, elem)
    scalar = source.is_scalar
    return lambda value: convert(value, source, elem, scalar=scalar)[()]


def _plan(op: str, a: object, b: object) -> Plan | None:
    """Operand conversions, function and result type of an operator on these operand types; None where one is no value."""
    xa, xb = _operand(a), _operand(b)
    if xa is None or xb is None:
        return None
    matched = _shift_type(xa, xb) if op in _SHIFTS else match_operator(xa, xb)
    elem = matched.element_of
    check_operator(_SYMBOLS.get(op, op), matched, None if type(xb) is bool else xb)  # a bool is no literal here
    if op in _BITWISE:
        a, b = bits_of(a, elem), bits_of(b, elem)
    fn: Callable[..., Any] = _FUNCTIONS[op]
    right = _converter(b, elem)
    if op == "pow" and elem.is_integer:
        raise type_error(f"** needs floating-point operands, got {matched}", "multiply, or convert to float32 first")
    if op == "pow":
        fn = _power(elem)
    kind = np_dtype(elem)
    if elem.is_bool and matched.is_scalar and op not in _COMPARE:
        fn = _of_bools(op)
    elif op in _DIVIDE and elem.is_integer:
        fn = _division(op, matched, kind)
    elif op in _SHIFTS and matched.is_scalar:
        fn = _scalar_shift(fn, kind)
    if op in ("floordiv", "floormod") and matched.is_scalar and type(b) is int and b > 0 and b & (b - 1) == 0:
        fn = operator.rshift if op == "floordiv" else operator.and_
        right = kind.type(b.bit_length() - 1 if op == "floordiv" else b - 1)
    fn = arithmetic_checked(op, fn, elem)
    result = bool_of(matched.lanes) if op in _COMPARE else matched
    scalar_bool = result.is_scalar and result.is_bool
    return _converter(a, elem), right, fn, None if scalar_bool else result


def _of_bools(op: str) -> Callable[[Any, Any], bool]:
    """An operator on scalar bools: computed with ints, any result but 0 is True."""
    fn: Callable[[int, int], object] = (
        _scalar_divide(_DIVIDE[op], np.dtype(np.int32)) if op in _DIVIDE else _FUNCTIONS[op]
    )
    return lambda a, b: bool(fn(int(a), int(b)))


def _division(op: str, matched: DataType, kind: NumpyDType) -> Function:
    """Integer division or remainder of the matched type."""
    if matched.is_vector:
        return np.fmod if op == "floormod" else quotient
    return _scalar_divide(_DIVIDE[op], kind)


def _shift_type(xa: Operand, xb: Operand) -> DataType:
    """The type of a shift: the left operand's, broadcast to the lanes of the right one."""
    left, right = (literal_dtype(x) if is_literal(x) else x for x in (xa, xb))
    if not (left.is_integer and right.is_integer):
        raise type_error(f"a shift needs integers, got {left} and {right}", "convert explicitly")
    if left.lanes != right.lanes and 1 not in (left.lanes, right.lanes):
        raise type_error(
            f"the operands have different lanes: {left} and {right}", "take the same number of lanes from both"
        )
    if left.is_scalar and left is INT32 and type(xb) is int and not 0 <= xb < 32:
        raise type_error(
            f"the shift amount {xb} of an int32 must be from 0 to 31", "a shift by 32 or more has no bits left"
        )
    return left.with_lanes(max(left.lanes, right.lanes))


_METHODS = (
    "add add",
    "sub sub",
    "mul mul",
    "truediv div",
    "floordiv floordiv",
    "mod floormod",
    "pow pow",
    "and bitand",
    "or bitor",
    "xor bitxor",
    "lshift shl",
    "rshift shr",
    "lt lt",
    "le le",
    "gt gt",
    "ge ge",
    "eq eq",
    "ne ne",
)
"""Python's name of an operator and ours."""

for _python, _op in (names.split() for names in _METHODS):
    setattr(PyVar, f"__{_python}__", _operator(_op, False))
    if _op not in _COMPARE:
        setattr(PyVar, f"__r{_python}__", _operator(_op, True))
