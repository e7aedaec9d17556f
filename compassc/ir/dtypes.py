"""Data types of the kernel language: scalars, vectors and masks, and pointers to them.

A `DataType` is an interned string such as `int8x32`; equal types are the same object, so `is` and dictionary look-ups
are cheap. `bool` is a one-bit unsigned integer and `boolxN` a mask.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from compass_core.errors import CompassError

VECTOR_BITS = 256
F_VECTOR = 16
"""Flag of an expression (`compassc.ir.exprs`): some sub-expression has a vector or mask type."""
F_WIDE = 32
"""Flag of an expression: some sub-expression has a vector type that is not one register."""
F_MASK_TYPE = 4096
"""Flag of an expression: some sub-expression has the type of a mask."""
F_WIDE_POINTER = 8192
"""Flag of an expression: some sub-expression points to vectors that are not one register."""
F_ADDRESS = 1 << 15
"""Flag of an expression: some sub-expression, or the storage of what it loads, is an address."""

_ALIASES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_ALIASES.update(
    {f"{short}{bits}": f"{full}{bits}" for short, full in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32)}
)
_ALIAS_RE = re.compile(r"\b(" + "|".join(sorted(_ALIASES, key=len, reverse=True)) + r")(?=x\d|\b)")
_DTYPE_RE = re.compile(r"(int|uint|float|bfloat|bool|void)(\d+)?(?:x(\d+))?\Z")
_QUESTION_RE = re.compile(r"is_(void|int|uint|integer|bool|float|bfloat|floating)(\d+)?(?:_(scalar|vector))?\Z")
_LEGAL_BITS = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64), "bfloat": (16,)}

_CODE_NUMBERS: dict[object, str] = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}

_INT_RANGE = {
    (code, bits): (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if code == "int" else (0, (1 << bits) - 1)
    for code in ("int", "uint")
    for bits in (1, 8, 16, 32, 64)
}
_FLOAT_MAX = {("float", 16): 65504.0, ("float", 32): 3.4028234663852886e38, ("bfloat", 16): 3.38953e38}


class DTypeError(CompassError, ValueError):
    """There is no such data type."""


class DataType(str):
    """An element kind, its bit width and a lane count; `DataType(kind)` is `dtype(kind)`.

    Questions combine: `is_float16`, `is_integer_scalar`, `is_uint8_vector`, ... The methods `with_...` give another
    type; DTypeError when there is none such.
    """

    type_code: str
    bits: int
    lanes: int
    element_of: DataType
    native_lanes: int
    is_bool: bool
    is_void: bool
    is_int: bool
    is_uint: bool
    is_integer: bool
    is_float: bool
    is_bfloat: bool
    is_floating: bool
    is_scalar: bool
    is_vector: bool
    is_mask: bool
    is_native: bool
    bytes: int
    """Bytes of one element (a bool takes one)."""
    total_bytes: int
    flags: int
    """The flags above that hold for the type."""

    def __new__(cls, kind: object) -> DataType:  # noqa: PYI034 - typing.Self is younger than Python 3.10
        return dtype(kind)

    if not TYPE_CHECKING:  # the compiler uses the declared ones

        def __getattr__(self, name: str) -> bool:
            match = _QUESTION_RE.match(name)
            if match is None:
                raise AttributeError(f"a data type has no {name!r}")
            kind, bits, shape = match.groups()
            answers = [getattr(self, f"is_{word}") for word in (kind, shape) if word]
            return all(answers) and (bits is None or self.bits == int(bits))

    @property
    def total_bits(self) -> int:
        return self.bits * self.lanes

    def with_lanes(self, lanes: int) -> DataType:
        """The vector type of `lanes` elements; the element type for 1."""
        return _legal(self.type_code, self.bits, lanes)

    def with_bits(self, bits: int) -> DataType:
        """The type with elements of another width."""
        return _legal(self.type_code, bits, self.lanes)

    def with_type_code(self, code: str | int) -> DataType:
        """The type with elements of another kind: `int`, `uint`, `float`, `bfloat`, or their numbers in DLPack."""
        return _legal(_CODE_NUMBERS.get(code, code), self.bits, self.lanes)

    def with_int(self) -> DataType:
        """The type with signed integers of the same width."""
        return self.with_type_code("int")

    def with_uint(self) -> DataType:
        """The type with unsigned integers of the same width."""
        return self.with_type_code("uint")

    def integer_range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type."""
        return _INT_RANGE[self.type_code, self.bits]

    def range(self) -> tuple[float, float]:
        """Smallest and largest value the type's range checks use (language rule, not IEEE infinity)."""
        if self.is_integer:
            return _INT_RANGE[self.type_code, self.bits]
        top = _FLOAT_MAX[self.type_code, self.bits]
        return -top, top


@lru_cache(maxsize=None, typed=True)
def _legal(code: str, bits: int, lanes: int) -> DataType:
    """`make_dtype` of what a user asked for; DTypeError when there is no such type."""
    known = bits in _LEGAL_BITS.get(code, ()) or (code, bits) in (("uint", 1), ("void", 0))
    if not known or type(lanes) is not int or lanes < 1 or (code == "void" and lanes > 1):
        raise DTypeError(f"there is no data type of {lanes} lanes of {bits}-bit {code}", code="dtype")
    return make_dtype(code, bits, lanes)


def make_dtype(code: str, bits: int, lanes: int = 1) -> DataType:
    """The interned type of an element code (`int uint float bfloat void`), a bit width and a lane count."""
    return _make_dtype(code, bits, lanes)


@cache
def _make_dtype(code: str, bits: int, lanes: int) -> DataType:
    name = "bool" if (code, bits) == ("uint", 1) else code if code == "void" else f"{code}{bits}"
    self = str.__new__(DataType, name if lanes == 1 else f"{name}x{lanes}")
    self.type_code, self.bits, self.lanes = code, bits, lanes
    self.bytes = max(1, bits // 8)
    self.total_bytes = self.bytes * lanes
    self.is_bool = (code, bits) == ("uint", 1)
    self.is_void = code == "void"
    self.is_int = code == "int"
    self.is_uint = code == "uint" and bits > 1
    self.is_integer = code in ("int", "uint")
    self.is_float = code == "float"
    self.is_bfloat = code == "bfloat"
    self.is_floating = code in ("float", "bfloat")
    self.is_scalar = lanes == 1
    self.is_vector = lanes > 1
    self.is_mask = self.is_bool and lanes > 1
    self.native_lanes = VECTOR_BITS // bits if bits in (8, 16, 32) else 0
    self.is_native = self.is_vector and (lanes == self.native_lanes or (self.is_bool and lanes in (8, 16, 32)))
    self.flags = self.is_vector * (F_VECTOR | F_WIDE * (not self.is_native) | F_MASK_TYPE * self.is_bool)
    self.element_of = self if lanes == 1 else make_dtype(code, bits)
    return self


@cache
def dtype(kind: object) -> DataType:
    """The type that a string names, full (`float16x16`) or short (`fp16x16`), or that a NumPy dtype or scalar type is.

    DTypeError for anything else.
    """
    if isinstance(kind, DataType):
        return kind
    text = kind if isinstance(kind, str) else _numpy_name(kind)
    match = _DTYPE_RE.match(_ALIAS_RE.sub(lambda m: _ALIASES[m.group()], text))
    if match is None:
        raise _no_type(kind)
    code, bits, lanes = match.group(1), int(match.group(2) or 0), int(match.group(3) or 1)
    if code == "bool" and not bits:
        code, bits = "uint", 1
    try:
        return _legal(code, bits, lanes)
    except DTypeError:
        raise _no_type(kind) from None


def _numpy_name(kind: Any) -> str:
    """The name of a NumPy dtype or scalar type: of no use here when its bytes are swapped or it is no number."""
    if isinstance(kind, type) and hasattr(kind, "dtype") and kind.__module__ in ("numpy", "ml_dtypes"):
        import numpy

        kind = numpy.dtype(kind)
    if type(kind).__module__.partition(".")[0] != "numpy" or not getattr(kind, "isnative", False) or kind.shape:
        raise _no_type(kind)
    return str(kind.name)


def _no_type(kind: object) -> DTypeError:
    return DTypeError(
        f"{kind!r} is not a data type", code="dtype", help="types are written like int32, fp16 or int8x32"
    )


class PointerType:
    """Pointer to `elem` in a memory `scope`; interned by `pointer_type`."""

    __slots__ = ("elem", "flags", "scope")
    lanes = 1
    bits = 32
    bytes = total_bytes = 4
    native_lanes = 0
    is_bool = is_void = is_vector = is_mask = is_scalar = is_native = False
    is_integer = is_int = is_uint = is_floating = is_float = is_bfloat = False

    def __init__(self, elem: DataType, scope: str) -> None:
        self.elem, self.scope = elem, scope
        self.flags = F_ADDRESS | F_WIDE_POINTER * (elem.is_vector and not elem.is_native)

    def __repr__(self) -> str:
        return f"{self.elem}*"

    def __reduce__(self) -> tuple[object, tuple[DataType, str]]:
        return pointer_type, (self.elem, self.scope)


Type = DataType | PointerType
"""The type of an expression."""


@cache
def pointer_type(elem: DataType, scope: str) -> PointerType:
    return PointerType(elem, scope)


SCOPES = ("global", "global.1", "global.2", "global.3", "private", "lsram", "shared", "constant")
STORAGE = tuple(dtype(t) for t in "int8 uint8 int16 uint16 int32 uint32 float16 float32 bfloat16".split())
BOOL = dtype("bool")
UINT8 = dtype("uint8")
INT32 = dtype("int32")
UINT32 = dtype("uint32")
FLOAT32 = dtype("float32")
VOID = dtype("void")


@cache
def native(elem: DataType) -> DataType:
    """The 256-bit vector type of an element type."""
    return elem.with_lanes(elem.native_lanes)


def bool_of(lanes: int) -> DataType:
    return make_dtype("uint", 1, lanes)


def type_text(t: DataType | PointerType) -> str:
    """The form of a type in IR text."""
    if isinstance(t, PointerType):
        return f'T.ptr("{t.elem}", "{t.scope}")'
    return f"T.{t}"
