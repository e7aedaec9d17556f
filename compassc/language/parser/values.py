"""Run-time values as the parser and plain Python helpers see them while a kernel is parsed.

A `Value` wraps a scalar, vector or mask expression, a `PointerValue` an address, a `BufferValue` an N-dimensional view.
Their Python operators build IR, without the literal adaptation that the parser adds inside kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from compass_core.errors import CompassError

from ...ir import exprs as E
from ...ir.dtypes import INT32, STORAGE, VOID, DataType, PointerType
from ...ops.core import Built, convert, imm
from ...ops.typing import check_literal, literal_dtype
from .. import python_operators
from ..advice import advice
from ..dispatch import active_parser
from ..specs import BUFFER_ATTRIBUTES, POINTER_ATTRIBUTES, VALUE_ATTRIBUTES, one_index, pointee_dtype

ZERO = E.IntImm(INT32, 0)
ONE = E.IntImm(INT32, 1)
_VALUE = "a run-time value"


def index_expr(x: object, what: str = "index") -> E.Expr:
    """An index or count as an integer scalar expression."""
    if type(x) is int:
        check_literal(x, INT32)
        return imm(x, INT32)
    if isinstance(x, Value) and x.dtype.is_integer and x.dtype.is_scalar:
        return x.expr
    shown = x.dtype if isinstance(x, Value) else kind_name(x)
    raise CompassError(f"the {what} must be an integer, got {shown}", code="index", help="convert it with S.i32(...)")


def add_offset(a: E.Expr, b: E.Expr) -> E.Expr:
    """`a + b` without adding zero."""
    if type(a) is E.IntImm and a.value == 0:
        return b
    if type(b) is E.IntImm and b.value == 0:
        return a
    return E.Binary("add", convert(a, INT32), convert(b, INT32))


def kind_name(x: object) -> str:
    """What a value of the parser is, as messages call it."""
    if isinstance(x, PointerValue):
        return f"a pointer ({x.elem}*)"
    if isinstance(x, Value):
        return str(x.dtype)
    if isinstance(x, BufferValue):
        return "a whole buffer"
    kinds = (getattr(type(x), "what", None), *(_PYTHON_KINDS.get(c.__name__) for c in type(x).__mro__))
    if kind := next(filter(None, kinds), None):
        return str(kind)
    if type(x).__module__ == "numpy" and not hasattr(x, "__len__"):
        return f"a NumPy scalar ({type(x).__name__})"
    return type(x).__name__


_PYTHON_KINDS = {
    "str": "a string",
    "DataType": "a data type",
    "NoneType": "None",
    "ellipsis": "`...`",
    "list": "a list",
    "tuple": "a tuple",
    "dict": "a dict",
    "set": "a set",
    "ndarray": "a NumPy array",
    "module": "a module",
    "type": "a type",
    **dict.fromkeys(("function", "builtin_function_or_method", "method", "ufunc"), "a function"),
    **dict.fromkeys("list_iterator list_reverseiterator enumerate zip map filter generator".split(), "an iterator"),
}


class Foreign:
    """A value of the run in the hands of Python, which asks it for what only the run knows: always an error."""

    __slots__ = ()


def _install_foreign() -> None:
    def refusal(name: str) -> Callable[..., NoReturn]:
        def method(self: object, *_given: object, **_named: object) -> NoReturn:
            raise unknown_here(self, name)

        return method

    for name in "int float complex index len iter abs round floor ceil trunc divmod array".split():
        setattr(Foreign, f"__{name}__", refusal(name))
    Foreign.__rdivmod__ = refusal("divmod")  # type: ignore[attr-defined]

    def of_numpy(self: object, function: Callable[..., object], *_given: object, **_named: object) -> NoReturn:
        raise unknown_here(self, function.__name__)

    Foreign.__array_ufunc__ = Foreign.__array_function__ = of_numpy  # type: ignore[attr-defined]


def unknown_here(value: object, name: str, help: str = "") -> CompassError:
    """The error of a function of Python that is given a value of the run; `help`: what to write instead."""
    shown = f"a run-time value of type {value.dtype}" if type(value) is Value else kind_name(value)
    return CompassError(
        f"{name}() of Python cannot take {shown}, which is known only when the kernel runs",
        code="builtin",
        help=help or advice(name),
    )


_install_foreign()


class Operators(Foreign):
    """Python operators that build IR, by the parser that is active; in kernels it adapts literals, too."""

    __slots__ = ()
    __hash__ = object.__hash__


python_operators.install(
    Operators,
    lambda symbol, a, b: active_parser(_VALUE).binary(symbol, a, b),
    lambda symbol, a: active_parser(_VALUE).unary(symbol, a),
)


class Value(Operators):
    """A run-time scalar, vector or mask."""

    __slots__ = ("__weakref__", "expr")
    attributes = VALUE_ATTRIBUTES

    def __init__(self, expr: E.Expr) -> None:
        self.expr = expr

    @property
    def dtype(self) -> DataType:
        return self.expr.data_type

    def __bool__(self) -> bool:
        raise CompassError(
            f"a run-time value of type {self.dtype} has no truth value while the kernel is parsed",
            code="truth",
            help="use `if` inside the kernel, or compare at run time",
        )

    def __repr__(self) -> str:
        return repr(self.expr)

    def __str__(self) -> str:
        return active_parser(_VALUE).text(self)

    def __format__(self, spec: str) -> str:
        return str(self)

    def __getitem__(self, index: object) -> Value:
        return Value(E.GetElement(self.expr, element_index(self.dtype, index)))

    @property
    def addr(self) -> PointerValue:
        """Private pointer to a variable."""
        if type(self.expr) is not E.Var:
            raise CompassError(
                "only a variable has an address", code="address-of", help="bind the value to a name first"
            )
        if self.dtype.element_of not in STORAGE:
            names = ", ".join(STORAGE)
            raise CompassError(
                f"cannot take the address of a {self.dtype} variable",
                code="address-of",
                help=f"types with an address are {names}",
            )
        active_parser(_VALUE).take_address(self.expr)
        return PointerValue(self.dtype, E.AddressOf(self.expr), ZERO, "a temporary pointer of a variable")


class Constant(Value):
    """A typed integer that is known: the variable of an unrolled loop. It is a Python number where one is asked for."""

    __slots__ = ()
    known = True

    @property
    def plain(self) -> int:
        """The Python number."""
        assert isinstance(self.expr, E.IntImm)
        return self.expr.value

    def __index__(self) -> int:
        return self.plain

    def __bool__(self) -> bool:
        return self.plain != 0

    def __float__(self) -> float:
        return float(self.plain)


def plain(x: Any) -> Any:
    """A constant as the Python number that it is, also in tuples, lists and slices; anything else unchanged."""
    if isinstance(x, Constant):
        return x.plain
    if type(x) in (tuple, list):
        return type(x)(map(plain, x))
    return slice(plain(x.start), plain(x.stop), plain(x.step)) if type(x) is slice else x


def element_index(vector: DataType, index: object) -> E.Expr:
    """The index of an element access on a vector, checked."""
    index = plain(index)
    if not vector.is_vector:
        raise CompassError(
            f"{vector} is a scalar and has no elements", code="element-access", help="use it without an index"
        )
    if isinstance(index, slice):
        raise CompassError("a vector cannot be sliced", code="element-access", help="use S.vsplit or S.vconcat")
    e = index_expr(index)
    if type(index) is int:
        whole = vector.lanes in (8, 16, 32) if vector.is_bool else vector.total_bits % 256 == 0
        if not whole:
            raise CompassError(
                f"element access needs whole 256-bit registers, got {vector}",
                code="element-access",
                help="store the vector to memory and read the element there",
            )
        if not 0 <= index < vector.lanes:
            raise CompassError(
                f"element {index} is outside {vector}",
                code="element-index",
                help=f"the elements are 0 to {vector.lanes - 1}",
            )
    elif vector.is_bool or not vector.is_native:
        raise CompassError(
            f"a run-time element index needs a vector of one register, got {vector}",
            code="element-access",
            help="store the vector to memory and read the element there",
        )
    return e


class PointerValue(Operators):
    """The address `(elem*)base + offset`. `blocked` says why it cannot be subscripted yet, or is empty."""

    __slots__ = ("__weakref__", "base", "blocked", "elem", "offset")
    attributes = POINTER_ATTRIBUTES

    def __init__(self, elem: DataType, base: E.Expr, offset: E.Expr, blocked: str = "") -> None:
        self.elem, self.base, self.offset, self.blocked = elem, base, offset, blocked

    @property
    def dtype(self) -> DataType:
        return self.elem

    @property
    def scope(self) -> str:
        return self.base.pointer_type.scope

    @property
    def expr(self) -> E.Pointer:
        return E.Pointer(self.elem, self.base, self.offset)

    @property
    def is_variable(self) -> bool:
        """Whether it is what a pointer variable holds, unmoved and of its type."""
        plain = type(self.offset) is E.IntImm and self.offset.value == 0
        return plain and type(self.base) is E.Var and self.base.pointer_type.elem is self.elem

    @property
    def is_nullptr(self) -> Value:
        plain = type(self.offset) is E.IntImm and self.offset.value == 0
        return Value(E.Unary("isnull", self.base if plain and type(self.base) is E.Var else self.expr))

    def __bool__(self) -> bool:
        raise CompassError("a pointer has no truth value", code="pointer-truth", help="use p.is_nullptr")

    def __repr__(self) -> str:
        return f"<{self.scope} {self.elem}* pointer>"

    def moved(self, step: E.Expr) -> PointerValue:
        if self.elem is VOID:
            raise CompassError("a void pointer cannot be moved", code="void-pointer", help="give it a type with as_ptr")
        return PointerValue(self.elem, self.base, add_offset(self.offset, step), self.blocked)

    def addr_of(self, index: object = 0) -> PointerValue:
        """Pointer to an element, as of a buffer of one dimension."""
        return self.moved(one_index(index, index_expr))

    def as_ptr(self, to: str | DataType) -> PointerValue:
        """The same address, pointing to another type."""
        elem = pointee_dtype(to, "as_ptr")
        if elem is self.elem:
            return self
        if type(self.offset) is E.IntImm and self.offset.value == 0 and type(self.base) is not E.FuncCall:
            return PointerValue(elem, self.base, ZERO, self.blocked)
        return PointerValue(elem, self.expr, ZERO, "a converted pointer with an offset")

    def __getitem__(self, index: object) -> Value:
        made: Value = active_parser(_VALUE).load(self, index)
        return made

    def __setitem__(self, index: object, value: object) -> None:
        active_parser(_VALUE).store(self, index, value)


class BufferValue(Foreign):
    """An N-dimensional row-major view; `name` is empty until it is bound."""

    __slots__ = ("buffer", "dims", "name")
    attributes = BUFFER_ATTRIBUTES

    def __init__(self, buffer: E.Buffer, dims: tuple[object, ...], name: str = "") -> None:
        self.buffer, self.dims, self.name = buffer, dims, name

    @property
    def dtype(self) -> DataType:
        return self.buffer.dtype

    @property
    def scope(self) -> str:
        return self.buffer.scope

    @property
    def shape(self) -> tuple[object, ...]:
        return self.dims

    def __repr__(self) -> str:
        return f"<{self.scope} buffer of {self.dtype}>"

    def flat_index(self, indices: tuple[E.Expr, ...]) -> E.Expr:
        """Row-major offset of an element; missing trailing indices are 0."""
        flat: E.Expr = ZERO
        for k, size in enumerate(self.buffer.shape):
            if not (type(flat) is E.IntImm and flat.value == 0):
                flat = E.Binary("mul", flat, convert(size, INT32))
            if k < len(indices):
                flat = add_offset(flat, convert(indices[k], INT32))
        return flat

    def addr_of(self, index: object = 0) -> PointerValue:
        """Pointer to an element; a tuple for several dimensions."""
        items = tuple(index) if isinstance(index, (tuple, list)) else (index,)
        if len(items) > len(self.dims):
            raise CompassError(
                f"{len(items)} indices for a buffer of {len(self.dims)} dimensions",
                code="index-count",
                help="give one index per dimension",
            )
        return PointerValue(self.dtype, self.buffer.data, self.flat_index(tuple(index_expr(i) for i in items)))

    def __getitem__(self, index: object) -> Value:
        made: Value = active_parser(_VALUE).load(self, index)
        return made

    def __setitem__(self, index: object, value: object) -> None:
        active_parser(_VALUE).store(self, index, value)


def wrap(x: Built) -> Any:
    """An IR expression as the value the kernel sees; containers item by item, anything else unchanged."""
    if isinstance(x, E.Expr):
        if isinstance(x, E.Pointer):
            return PointerValue(x.elem, x.base, x.offset)
        if isinstance(x.dtype, PointerType):
            blocked = "a pointer returned by a call" if type(x) is not E.Var else ""
            return PointerValue(x.dtype.elem, x, ZERO, blocked)
        return Value(x)
    if isinstance(x, (tuple, list)):
        return type(x)(wrap(i) for i in x)
    return x


def unwrap(x: object) -> Any:
    """The IR form of an argument of an operation: values and pointers become expressions, literals are kept."""
    if isinstance(x, (Value, PointerValue)):
        return x.expr
    if isinstance(x, BufferValue):
        return x.addr_of(0).expr
    if isinstance(x, (tuple, list)) and any(isinstance(i, (Value, PointerValue, BufferValue)) for i in x):
        return type(x)(unwrap(i) for i in x)
    if isinstance(x, dict):
        return {k: unwrap(v) for k, v in x.items()}
    return x


def is_runtime(x: object) -> bool:
    return isinstance(x, Foreign)


def literal_expr(x: float | bool) -> E.Expr:
    """A literal as a constant of the type it takes on its own."""
    kind = literal_dtype(x)
    if kind is INT32 and not -(1 << 31) <= x < 1 << 31:
        raise CompassError(
            f"the literal {x} does not fit int32", code="literal-range", help=f"write S.u32({x}) or split the value"
        )
    return imm(x, kind)
