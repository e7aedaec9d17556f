"""Immutable expressions of the IR.

Vector operations are `Call`s of declared operations (`compassc.ops`), with mask and inactive-lane source (`r`) as fields
of their own. Python operators on vectors are `Binary` nodes of vector type until the pass LowerStandard.

Each expression carries `flags`, the union over its tree of the `F_*` bits, so a pass can skip whole trees that hold
nothing of its interest.
"""

from __future__ import annotations

from typing import Any

from .dtypes import DataType, PointerType, bool_of, make_dtype, pointer_type

F_LOAD = 1  # reads memory through Load
F_CALL = 2  # contains a Call of a declared operation
F_FUNC = 4  # calls a sub-function
F_MASK = 8  # contains a ConstMask or TailMask
F_VECTOR = 16  # some sub-expression has a vector or mask type
F_WIDE = 32  # some sub-expression has a vector type that is not one register
F_FLOORDIV = 64  # floordiv or floormod
F_VCAST = 128  # a vector cast (Call of "cast")
F_RAW_R = 256  # a Call whose inactive lanes are unspecified
F_POINTER = 512  # an address is computed

ARITHMETIC = frozenset("add sub mul div mod floordiv floormod min max bitand bitor bitxor shl shr".split())
COMPARISON = frozenset("eq ne lt le gt ge".split())
LOGICAL = frozenset(("and", "or"))
COMMUTATIVE = frozenset("add mul min max eq ne bitand bitor bitxor and or".split())


def _flags_of_dtype(dtype: Any) -> int:
    if not dtype.is_vector:
        return 0
    return F_VECTOR if dtype.is_native else F_VECTOR | F_WIDE


class Node:
    """Base of all nodes. `fields` names the constructor's arguments, in order."""

    __slots__ = ()
    fields: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __repr__(self) -> str:
        inner = ", ".join(f"{f}={getattr(self, f)!r}" for f in self.fields)
        return f"{type(self).__name__}({inner})"


class Expr(Node):
    """A value of type `dtype`."""

    __slots__ = ("dtype", "flags")
    dtype: Any
    flags: int

    def map(self, fn) -> Expr:
        """The node with `fn` applied to each child; the node itself when no child changed."""
        return self

    def children(self) -> tuple[Expr, ...]:
        return ()


_set = object.__setattr__


class Var(Expr):
    """A variable; equal only to itself. `nonneg` promises a value >= 0."""

    __slots__ = ("name", "nonneg")
    fields = ("name", "dtype", "nonneg")

    def __init__(self, name: str, dtype: DataType | PointerType, nonneg: bool = False) -> None:
        _set(self, "name", name)
        _set(self, "dtype", dtype)
        _set(self, "nonneg", nonneg)
        _set(self, "flags", _flags_of_dtype(dtype))


class IntImm(Expr):
    __slots__ = ("value",)
    fields = ("dtype", "value")

    def __init__(self, dtype: DataType, value: int) -> None:
        _set(self, "dtype", dtype)
        _set(self, "value", int(value))
        _set(self, "flags", 0)


class FloatImm(Expr):
    __slots__ = ("value",)
    fields = ("dtype", "value")

    def __init__(self, dtype: DataType, value: float) -> None:
        _set(self, "dtype", dtype)
        _set(self, "value", float(value))
        _set(self, "flags", 0)


class StrImm(Expr):
    """A string argument of an operation (printf format)."""

    __slots__ = ("value",)
    fields = ("value",)

    def __init__(self, value: str) -> None:
        _set(self, "dtype", make_dtype("void", 0))
        _set(self, "value", value)
        _set(self, "flags", 0)


class Cast(Expr):
    """Scalar conversion by C rules. Vector conversions are `Call("cast", ...)`."""

    __slots__ = ("value",)
    fields = ("dtype", "value")

    def __init__(self, dtype: DataType, value: Expr) -> None:
        _set(self, "dtype", dtype)
        _set(self, "value", value)
        _set(self, "flags", value.flags | _flags_of_dtype(dtype))

    def map(self, fn) -> Expr:
        value = fn(self.value)
        return self if value is self.value else Cast(self.dtype, value)

    def children(self):
        return (self.value,)


class Reinterpret(Expr):
    """The same bits as another type; also pointer to 32-bit integer and back."""

    __slots__ = ("value",)
    fields = ("dtype", "value")

    def __init__(self, dtype: DataType | PointerType, value: Expr) -> None:
        _set(self, "dtype", dtype)
        _set(self, "value", value)
        _set(self, "flags", value.flags | _flags_of_dtype(dtype))

    def map(self, fn) -> Expr:
        value = fn(self.value)
        return self if value is self.value else Reinterpret(self.dtype, value)

    def children(self):
        return (self.value,)


class Binary(Expr):
    """A two-operand operator; operands have one type (`compass_core.operators` says what they do).

    `div` and `mod` cut towards zero; `floordiv` and `floormod` round down, and take a constant power of two.
    """

    __slots__ = ("a", "b", "op")
    fields = ("op", "a", "b")

    def __init__(self, op: str, a: Expr, b: Expr) -> None:
        _set(self, "op", op)
        _set(self, "a", a)
        _set(self, "b", b)
        _set(self, "dtype", a.dtype if op in ARITHMETIC else bool_of(a.dtype.lanes))
        flags = a.flags | b.flags
        if op == "floordiv" or op == "floormod":
            flags |= F_FLOORDIV
        _set(self, "flags", flags)

    def map(self, fn) -> Expr:
        a, b = fn(self.a), fn(self.b)
        return self if a is self.a and b is self.b else Binary(self.op, a, b)

    def children(self):
        return (self.a, self.b)


class Unary(Expr):
    """`not` (bool), `bitnot` (integers and masks) or `isnull` (pointer)."""

    __slots__ = ("a", "op")
    fields = ("op", "a")

    def __init__(self, op: str, a: Expr) -> None:
        _set(self, "op", op)
        _set(self, "a", a)
        _set(self, "dtype", a.dtype if op == "bitnot" else bool_of(1))
        _set(self, "flags", a.flags)

    def map(self, fn) -> Expr:
        a = fn(self.a)
        return self if a is self.a else Unary(self.op, a)

    def children(self):
        return (self.a,)


class Select(Expr):
    """`a if cond else b`; with a scalar condition only the chosen side is evaluated."""

    __slots__ = ("a", "b", "cond")
    fields = ("cond", "a", "b")

    def __init__(self, cond: Expr, a: Expr, b: Expr) -> None:
        _set(self, "cond", cond)
        _set(self, "a", a)
        _set(self, "b", b)
        _set(self, "dtype", a.dtype)
        _set(self, "flags", cond.flags | a.flags | b.flags)

    def map(self, fn) -> Expr:
        cond, a, b = fn(self.cond), fn(self.a), fn(self.b)
        return self if cond is self.cond and a is self.a and b is self.b else Select(cond, a, b)

    def children(self):
        return (self.cond, self.a, self.b)


class Ramp(Expr):
    """The index vector base, base+stride, ... of `lanes` items."""

    __slots__ = ("base", "lanes", "stride")
    fields = ("base", "stride", "lanes")

    def __init__(self, base: Expr, stride: Expr, lanes: int) -> None:
        _set(self, "base", base)
        _set(self, "stride", stride)
        _set(self, "lanes", lanes)
        _set(self, "dtype", base.dtype.with_lanes(lanes))
        _set(self, "flags", base.flags | stride.flags | F_VECTOR | F_WIDE)

    def map(self, fn) -> Expr:
        base, stride = fn(self.base), fn(self.stride)
        return self if base is self.base and stride is self.stride else Ramp(base, stride, self.lanes)

    def children(self):
        return (self.base, self.stride)


class Broadcast(Expr):
    """A scalar in every lane."""

    __slots__ = ("lanes", "value")
    fields = ("value", "lanes")

    def __init__(self, value: Expr, lanes: int) -> None:
        _set(self, "value", value)
        _set(self, "lanes", lanes)
        _set(self, "dtype", value.dtype.with_lanes(lanes))
        _set(self, "flags", value.flags | _flags_of_dtype(self.dtype))

    def map(self, fn) -> Expr:
        value = fn(self.value)
        return self if value is self.value else Broadcast(value, self.lanes)

    def children(self):
        return (self.value,)


class VectorLiteral(Expr):
    """A vector given element by element; elements keep their own scalar types."""

    __slots__ = ("elems",)
    fields = ("dtype", "elems")

    def __init__(self, dtype: DataType, elems: tuple[Expr, ...]) -> None:
        _set(self, "dtype", dtype)
        _set(self, "elems", elems)
        flags = _flags_of_dtype(dtype)
        for e in elems:
            flags |= e.flags
        _set(self, "flags", flags)

    def map(self, fn) -> Expr:
        elems = tuple([fn(e) for e in self.elems])
        return self if all(map(_is, elems, self.elems)) else VectorLiteral(self.dtype, elems)

    def children(self):
        return self.elems


def _is(a: object, b: object) -> bool:
    return a is b


class ConstMask(Expr):
    """A mask known at compile time: bit i of `bits` is lane i."""

    __slots__ = ("bits", "lanes")
    fields = ("bits", "lanes")

    def __init__(self, bits: int, lanes: int) -> None:
        _set(self, "bits", bits & ((1 << lanes) - 1))
        _set(self, "lanes", lanes)
        _set(self, "dtype", bool_of(lanes))
        _set(self, "flags", F_MASK | _flags_of_dtype(self.dtype))

    @property
    def all_true(self) -> bool:
        return self.bits == (1 << self.lanes) - 1


class TailMask(Expr):
    """The mask whose first `count` lanes are true."""

    __slots__ = ("count", "lanes")
    fields = ("count", "lanes")

    def __init__(self, count: Expr, lanes: int) -> None:
        _set(self, "count", count)
        _set(self, "lanes", lanes)
        _set(self, "dtype", bool_of(lanes))
        _set(self, "flags", count.flags | F_MASK | _flags_of_dtype(self.dtype))

    def map(self, fn) -> Expr:
        count = fn(self.count)
        return self if count is self.count else TailMask(count, self.lanes)

    def children(self):
        return (self.count,)


class Pointer(Expr):
    """The address `(elem*)base + offset`.

    `base` is a pointer variable, another Pointer (a type change at an offset), an `AddressOf`, a `FuncCall` that
    returns a pointer, or a `Reinterpret` of an integer.
    """

    __slots__ = ("base", "offset")
    fields = ("elem", "base", "offset")

    def __init__(self, elem: DataType, base: Expr, offset: Expr) -> None:
        _set(self, "base", base)
        _set(self, "offset", offset)
        _set(self, "dtype", pointer_type(elem, base.dtype.scope))
        _set(self, "flags", base.flags | offset.flags | F_POINTER)

    @property
    def elem(self) -> DataType:
        return self.dtype.elem

    @property
    def scope(self) -> str:
        return self.dtype.scope

    def map(self, fn) -> Expr:
        base, offset = fn(self.base), fn(self.offset)
        return self if base is self.base and offset is self.offset else Pointer(self.dtype.elem, base, offset)

    def children(self):
        return (self.base, self.offset)


class AddressOf(Expr):
    """The address of a scalar or vector variable (private memory)."""

    __slots__ = ("var",)
    fields = ("var",)

    def __init__(self, var: Var) -> None:
        _set(self, "var", var)
        _set(self, "dtype", pointer_type(var.dtype, "private"))
        _set(self, "flags", F_POINTER)

    def map(self, fn) -> Expr:
        var = fn(self.var)
        return self if var is self.var else AddressOf(var)

    def children(self):
        return (self.var,)


class Buffer(Node):
    """An N-dimensional row-major view of the storage behind the pointer variable `data`.

    An empty shape is the flat view of a pointer. Not an expression; `Load` and `Store` access it.
    """

    __slots__ = ("data", "dtype", "shape")
    fields = ("data", "dtype", "shape")

    def __init__(self, data: Var, dtype: DataType, shape: tuple[Expr, ...] = ()) -> None:
        _set(self, "data", data)
        _set(self, "dtype", dtype)
        _set(self, "shape", shape)

    @property
    def scope(self) -> str:
        return self.data.dtype.scope

    def map(self, fn) -> Buffer:
        data = fn(self.data)
        shape = tuple([fn(s) for s in self.shape])
        if data is self.data and all(map(_is, shape, self.shape)):
            return self
        return Buffer(data, self.dtype, shape)


class Load(Expr):
    """One element of a buffer, or a vector of them where the last index is a Ramp (inactive lanes 0)."""

    __slots__ = ("buffer", "indices", "mask")
    fields = ("buffer", "indices", "mask")

    def __init__(self, buffer: Buffer, indices: tuple[Expr, ...], mask: Expr | None = None) -> None:
        _set(self, "buffer", buffer)
        _set(self, "indices", indices)
        _set(self, "mask", mask)
        lanes = indices[-1].dtype.lanes
        dtype = buffer.dtype if lanes == 1 else buffer.dtype.with_lanes(buffer.dtype.lanes * lanes)
        _set(self, "dtype", dtype)
        flags = F_LOAD | _flags_of_dtype(dtype)
        for i in indices:
            flags |= i.flags
        _set(self, "flags", flags if mask is None else flags | mask.flags)

    def map(self, fn) -> Expr:
        buffer = self.buffer.map(fn)
        indices = tuple([fn(i) for i in self.indices])
        mask = None if self.mask is None else fn(self.mask)
        if buffer is self.buffer and mask is self.mask and all(map(_is, indices, self.indices)):
            return self
        return Load(buffer, indices, mask)

    def children(self):
        own = (self.buffer.data, *self.indices)
        return own if self.mask is None else (*own, self.mask)


class GetElement(Expr):
    """Lane `index` of a vector or mask."""

    __slots__ = ("index", "vector")
    fields = ("vector", "index")

    def __init__(self, vector: Expr, index: Expr) -> None:
        _set(self, "vector", vector)
        _set(self, "index", index)
        _set(self, "dtype", vector.dtype.element_of)
        _set(self, "flags", vector.flags | index.flags)

    def map(self, fn) -> Expr:
        vector, index = fn(self.vector), fn(self.index)
        return self if vector is self.vector and index is self.index else GetElement(vector, index)

    def children(self):
        return (self.vector, self.index)


class Call(Expr):
    """A declared operation. `mask` None: all lanes; `r` None: inactive lanes unspecified (`needs_r` says whether the
    operation has such a source at all). `attrs` are compile-time options as sorted (name, value) pairs."""

    __slots__ = ("args", "attrs", "mask", "op", "r")
    fields = ("op", "args", "dtype", "mask", "r", "attrs")

    def __init__(
        self,
        op: str,
        args: tuple[Expr, ...],
        dtype: Any,
        mask: Expr | None = None,
        r: Expr | None = None,
        attrs: tuple[tuple[str, object], ...] = (),
    ) -> None:
        _set(self, "op", op)
        _set(self, "args", args)
        _set(self, "dtype", dtype)
        _set(self, "mask", mask)
        _set(self, "r", r)
        _set(self, "attrs", attrs)
        flags = F_CALL | _flags_of_dtype(dtype)
        for a in args:
            flags |= a.flags
        if mask is not None:
            flags |= mask.flags
        flags |= F_RAW_R if r is None else r.flags
        if op == "cast":
            flags |= F_VCAST
        _set(self, "flags", flags)

    def attr(self, name: str, default: object = None) -> Any:
        for key, value in self.attrs:
            if key == name:
                return value
        return default

    def replace(self, **changes: Any) -> Call:
        """The same call with some fields changed."""
        values = {f: changes.get(f, getattr(self, f)) for f in self.fields}
        return Call(**values)

    def map(self, fn) -> Expr:
        args = tuple([fn(a) for a in self.args])
        mask = None if self.mask is None else fn(self.mask)
        r = None if self.r is None else fn(self.r)
        if mask is self.mask and r is self.r and all(map(_is, args, self.args)):
            return self
        return Call(self.op, args, self.dtype, mask, r, self.attrs)

    def children(self):
        tail = tuple(x for x in (self.mask, self.r) if x is not None)
        return self.args + tail


class FuncCall(Expr):
    """A call of another function of the module, by symbol."""

    __slots__ = ("args", "func")
    fields = ("func", "args", "dtype")

    def __init__(self, func: str, args: tuple[Expr, ...], dtype: Any) -> None:
        _set(self, "func", func)
        _set(self, "args", args)
        _set(self, "dtype", dtype)
        flags = F_FUNC | _flags_of_dtype(dtype)
        for a in args:
            flags |= a.flags
        _set(self, "flags", flags)

    def map(self, fn) -> Expr:
        args = tuple([fn(a) for a in self.args])
        return self if all(map(_is, args, self.args)) else FuncCall(self.func, args, self.dtype)

    def children(self):
        return self.args
