"""Immutable expressions of the IR.

Vector operations are `Call`s of declared operations (`compassc.ops`), with mask and inactive-lane source (`r`) as fields
of their own. Python operators on vectors are `Binary` nodes of vector type until the pass LowerVectorOperators.

Each expression and each statement carries `flags`, the union over its tree of the `F_*` bits, so a pass can skip whole
trees that hold nothing of its interest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from compass_core.errors import Span

from .dtypes import (
    F_ADDRESS,
    F_MASK_TYPE,
    F_VECTOR,
    F_WIDE,
    F_WIDE_POINTER,
    VOID,
    DataType,
    PointerType,
    Type,
    bool_of,
    pointer_type,
)
from .expr_op import ExprOp
from .node import Flagged, Node, derived, field, node

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["F_ADDRESS", "F_MASK_TYPE", "F_VECTOR", "F_WIDE", "F_WIDE_POINTER"]

F_LOAD = 1  # reads memory through BufferLoad
F_CALL = 2  # contains a Call of a declared operation
F_FUNC = 4  # a call whose value cannot be computed twice: of a sub-function, or of an atomic operation
F_MASK = 8  # contains a ConstMask or TailMask
F_FLOORDIV = 64  # floordiv or floormod
F_VCAST = 128  # a vector cast (Call of "cast")
F_RAW_R = 256  # a Call whose inactive lanes are unspecified
F_POINTER = 512  # an address is computed
F_CHANGES = 1024  # what may change variables: an assignment, the address of one, inline assembly
F_DIVISION = 2048  # a quotient or a remainder
F_PLACED = F_LOAD | F_CALL | F_FUNC  # contains a PlacedExpr
F_JUMP = 1 << 14  # of statements: a break, continue or return
F_OPERATOR = 1 << 16  # an operator, a choice, or a conversion of a scalar
_FIRST_OF_CALLS, _BITS_OF_CALLS = 17, 13  # the bits that operations share: up to 30 a number is one digit of Python

ARITHMETIC = frozenset("add sub mul div mod floordiv floormod min max bitand bitor bitxor shl shr".split())
_OPERATOR_FLAGS = dict.fromkeys(("div", "mod"), F_OPERATOR | F_DIVISION)
_OPERATOR_FLAGS |= dict.fromkeys(("floordiv", "floormod"), F_OPERATOR | F_DIVISION | F_FLOORDIV)
COMPARISON = frozenset("eq ne lt le gt ge".split())
LOGICAL = frozenset(("and", "or"))
COMMUTATIVE = frozenset("add mul min max eq ne bitand bitor bitxor and or".split())

Mapping = Callable[["Expr"], "Expr"]


class Expr(ExprOp, Flagged):
    """A value of type `dtype`. Expressions are equal to themselves only; `a == b` is also the comparison of their values."""

    __slots__ = ()
    dtype: Type

    def as_expr(self) -> Expr:
        return self

    __hash__ = Node.__hash__

    def __repr__(self) -> str:
        from .printer import print_expr

        return print_expr(self)

    @property
    def data_type(self) -> DataType:
        """The type of a value; TypeError for an address."""
        if type(self.dtype) is DataType:
            return self.dtype
        raise TypeError(f"{self} is an address")

    @property
    def pointer_type(self) -> PointerType:
        """The type of an address; TypeError for a value."""
        if type(self.dtype) is PointerType:
            return self.dtype
        raise TypeError(f"{self} is no address")

    def map(self, fn: Mapping) -> Self:
        """The node with `fn` applied to each child; the node itself when no child changed."""
        return self

    def children(self) -> tuple[Expr, ...]:
        return ()


@node(abstract=True)
class PlacedExpr(Expr):
    """An expression that keeps its place in the kernel: `span`, which does not count in comparisons."""

    span: Span | None = field(default=None, kw_only=True, compare=False)

    def at(self, span: Span | None) -> Self:
        """The same expression at another place."""
        raise NotImplementedError  # generated


@node()
class Var(Expr):
    """A variable; equal only to itself. `nonneg` promises a value >= 0."""

    name: str
    dtype: Type
    nonneg: bool = False

    @property
    def name_hint(self) -> str:
        return self.name


@node()
class IntImm(Expr):
    """An integer or a bool known at compile time."""

    dtype: DataType
    value: int = field(normalise=int)

    def __int__(self) -> int:
        return self.value


@node()
class FloatImm(Expr):
    """A real number known at compile time."""

    dtype: DataType
    value: float = field(normalise=float)

    def __float__(self) -> float:
        return self.value


def _void() -> DataType:
    return VOID


@node()
class StringImm(Expr):
    """A string argument of an operation (printf format)."""

    value: str
    dtype: DataType = derived(_void, init=False)


@node(flags=F_OPERATOR, text="T.cast(value, dtype)")
class Cast(Expr):
    """Scalar conversion by C rules. Vector conversions are `Call("cast", ...)`."""

    dtype: DataType
    value: Expr


@node(text="T.reinterpret(value, dtype)")
class Reinterpret(Expr):
    """The same bits as another type; also pointer to 32-bit integer and back."""

    dtype: Type
    value: Expr


def _type_of_binary(op: str, a: Expr) -> Type:
    return a.dtype if op in ARITHMETIC else bool_of(a.dtype.lanes)


def _flags_of_binary(op: str, a: Expr, b: Expr) -> int:
    return a.flags | b.flags | _OPERATOR_FLAGS.get(op, F_OPERATOR)


@node()
class Binary(Expr):
    """A two-operand operator; operands have one type (`compass_core.operators` says what they do).

    `div` and `mod` cut towards zero; `floordiv` and `floormod` round down, and take a constant power of two.
    """

    op: str
    a: Expr
    b: Expr
    dtype: Type = derived(_type_of_binary, init=False)
    flags: int = derived(_flags_of_binary, init=False)


def _type_of_unary(op: str, a: Expr) -> Type:
    return a.dtype if op == "bitnot" else bool_of(1)


@node(flags=F_OPERATOR)
class Unary(Expr):
    """`not` (bool), `bitnot` (integers and masks) or `isnull` (pointer)."""

    op: str
    a: Expr
    dtype: Type = derived(_type_of_unary, init=False)


def _type_of_select(true_value: Expr) -> Type:
    return true_value.dtype


@node(flags=F_OPERATOR, text="T.select(condition, true_value, false_value)")
class Select(Expr):
    """`true_value if condition else false_value`; with a scalar condition only the chosen side is evaluated."""

    condition: Expr
    true_value: Expr
    false_value: Expr
    dtype: Type = derived(_type_of_select, init=False)


def _type_of_ramp(base: Expr, lanes: int) -> DataType:
    return base.data_type.with_lanes(lanes)


@node(flags=F_VECTOR | F_WIDE, text="T.ramp(base, stride, lanes)")
class Ramp(Expr):
    """The index vector base, base+stride, ... of `lanes` items."""

    base: Expr
    stride: Expr
    lanes: int
    dtype: DataType = derived(_type_of_ramp, init=False)


def _type_of_broadcast(value: Expr, lanes: int) -> DataType:
    return value.data_type.with_lanes(lanes)


@node(text="T.splat(value, lanes)")
class Broadcast(Expr):
    """A scalar in every lane."""

    value: Expr
    lanes: int
    dtype: DataType = derived(_type_of_broadcast, init=False)


@node(text="T.vector(dtype, *elems)")
class VectorLiteral(Expr):
    """A vector given element by element; elements keep their own scalar types."""

    dtype: DataType
    elems: tuple[Expr, ...]


def _lanes_only(bits: int, lanes: int) -> int:
    return bits & ((1 << lanes) - 1)


def _mask_type(lanes: int) -> DataType:
    return bool_of(lanes)


@node(flags=F_MASK)
class ConstMask(Expr):
    """A mask known at compile time: bit i of `bits` is lane i."""

    bits: int = field(normalise=_lanes_only)
    lanes: int
    dtype: DataType = derived(_mask_type, init=False)

    @property
    def all_true(self) -> bool:
        return self.bits == (1 << self.lanes) - 1


@node(flags=F_MASK, text="T.tail(count, lanes)")
class TailMask(Expr):
    """The mask whose first `count` lanes are true."""

    count: Expr
    lanes: int
    dtype: DataType = derived(_mask_type, init=False)


def _type_of_pointer(elem: DataType, base: Expr) -> PointerType:
    return pointer_type(elem, base.pointer_type.scope)


@node(flags=F_POINTER)
class Pointer(Expr):
    """The address `(elem*)base + offset`.

    `base` is a pointer variable, another Pointer (a type change at an offset), an `AddressOf`, a `FuncCall` that
    returns a pointer, or a `Reinterpret` of an integer.
    """

    elem: DataType
    base: Expr
    offset: Expr
    dtype: PointerType = derived(_type_of_pointer, init=False)

    @property
    def scope(self) -> str:
        return self.dtype.scope


def _private_pointer(var: Var) -> PointerType:
    return pointer_type(var.data_type, "private")


def _flags_of_address(dtype: PointerType) -> int:
    return F_POINTER | F_CHANGES | dtype.flags


@node(text="T.address_of(var)")
class AddressOf(Expr):
    """The address of a scalar or vector variable (private memory)."""

    var: Var
    dtype: PointerType = derived(_private_pointer, init=False)
    flags: int = derived(_flags_of_address, init=False)  # nothing is read from the variable


@node()
class Buffer(Node):
    """An N-dimensional row-major view of the storage behind the pointer variable `data`.

    An empty shape is the flat view of a pointer. Not an expression; `BufferLoad` and `BufferStore` access it.
    `axis_separators`: how many dimensions stand before each boundary between physical ones.
    """

    data: Var
    dtype: DataType
    shape: tuple[Expr, ...] = ()
    axis_separators: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return self.data.name

    @property
    def scope(self) -> str:
        return self.data.pointer_type.scope

    def map(self, fn: Mapping) -> Self:
        """The view with `fn` applied to storage and extents."""
        return self


def _type_of_load(buffer: Buffer, indices: tuple[Expr, ...]) -> DataType:
    lanes = indices[-1].dtype.lanes
    return buffer.dtype if lanes == 1 else buffer.dtype.with_lanes(buffer.dtype.lanes * lanes)


@node(flags=F_LOAD)
class BufferLoad(PlacedExpr):
    """One element of a buffer, or a vector of them where the last index is a Ramp (inactive lanes 0)."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    mask: Expr | None = None
    dtype: DataType = derived(_type_of_load, init=False)


def _type_of_region(buffer: Buffer) -> DataType:
    return buffer.dtype


@node()
class BufferRegion(Expr):
    """The elements of a buffer from `starts` on, `extents` of them: what a block reads or writes, nowhere else."""

    buffer: Buffer
    starts: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    dtype: DataType = derived(_type_of_region, init=False)


def _element_type(vector: Expr) -> DataType:
    return vector.data_type.element_of


@node(text="T.element(vector, index)")
class GetElement(Expr):
    """Lane `index` of a vector or mask."""

    vector: Expr
    index: Expr
    dtype: DataType = derived(_element_type, init=False)


@cache
def _flags_of_operation(op: str) -> int:
    """What a call of an operation by this name adds to its flags."""
    single, assembly = op.startswith("atomic_"), "asm" in op
    own = 1 << (_FIRST_OF_CALLS + sum(op.encode()) % _BITS_OF_CALLS)
    return own | F_CALL | F_FUNC * single | F_CHANGES * assembly | F_VCAST * (op == "cast")


def flags_of_calls(*ops: str) -> int:
    """The flags of which each call of one of these operations has one; calls of others may have it, too."""
    found = 0
    for op in ops:
        found |= _flags_of_operation(op) >> _FIRST_OF_CALLS << _FIRST_OF_CALLS
    return found


def _flags_of_call(op: str, args: tuple[Expr, ...], dtype: Type, mask: Expr | None, r: Expr | None) -> int:
    flags = _flags_of_operation(op) | dtype.flags | (F_RAW_R if r is None else r.flags)
    for a in args:
        flags |= a.flags
    if mask is not None:
        flags |= mask.flags
    return flags


@node()
class Call(PlacedExpr):
    """A declared operation. `mask` None: all lanes; `r` None: inactive lanes unspecified (`needs_r` says whether the
    operation has such a source at all). `attrs` are compile-time options as sorted (name, value) pairs."""

    op: str
    args: tuple[Expr, ...]
    dtype: Type
    mask: Expr | None = None
    r: Expr | None = None
    attrs: tuple[tuple[str, object], ...] = ()
    flags: int = derived(_flags_of_call, init=False)

    def attr(self, name: str, default: object = None) -> Any:
        """The value of a compile-time option."""
        for key, value in self.attrs:
            if key == name:
                return value
        return default


LEAVES = frozenset((Var, IntImm, FloatImm, StringImm, ConstMask))
"""The classes of expressions that have no parts."""


def is_single(e: Expr) -> bool:
    """Whether a node itself is a call whose value cannot be computed twice."""
    return type(e) is FuncCall or (type(e) is Call and e.op.startswith("atomic_"))


@node(flags=F_FUNC)
class FuncCall(PlacedExpr):
    """A call of another function of the module, by symbol."""

    func: str
    args: tuple[Expr, ...]
    dtype: Type
