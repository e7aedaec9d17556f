"""Names of types, address spaces and literals in the C dialect."""

from __future__ import annotations

import math
import struct
from functools import cache

from compass_core.errors import CompassError

from ..ir.dtypes import BOOL, INT32, UINT8, DataType, PointerType
from ..ir.exprs import FloatImm, IntImm

_SCALARS = {
    "int8": "char",
    "uint8": "uchar",
    "int16": "short",
    "uint16": "ushort",
    "int32": "int",
    "uint32": "uint",
    "int64": "long",
    "uint64": "ulong",
    "float16": "half",
    "bfloat16": "bf16",
    "float32": "float",
    "float64": "double",
    "bool": "bool",
    "void": "void",
}
_QUALIFIERS = {
    "global": "__global ",
    "global.1": "__global ",
    "global.2": "__global ",
    "global.3": "__global ",
    "shared": "__local ",
    "lsram": "__lsram ",
    "constant": "__constant ",
    "private": "",
}
MASK_LETTERS = {32: "b", 16: "h", 8: "w"}
INT32_MIN = -(1 << 31)


def codegen_error(message: str, help: str = "") -> CompassError:
    return CompassError(message, code="codegen", help=help)


@cache
def c_type(t: DataType | PointerType) -> str:
    """The C name of a type. A vector must be one register wide."""
    if isinstance(t, PointerType):
        return f"{qualifier(t.scope)}{c_type(in_memory(t.elem))}*"
    if t.is_vector and not t.is_native:
        raise codegen_error(
            f"a value of type {t} is not one vector register",
            "keep the pass LegalizeVectorWidth enabled",
        )
    name = _SCALARS[t.element_of]
    return f"{name}{t.lanes}" if t.is_vector else name


def in_memory(t: DataType) -> DataType:
    """The type of an element in memory: a bool is a byte there."""
    return UINT8 if t is BOOL else t


def qualifier(scope: str) -> str:
    """The address space of a memory scope, with a trailing blank where there is one."""
    if scope not in _QUALIFIERS:
        raise codegen_error(f"memory scope {scope!r} has no C address space")
    return _QUALIFIERS[scope]


def mask_letter(lanes: int) -> str:
    """The suffix of mask builtins for a lane count."""
    if lanes not in MASK_LETTERS:
        raise codegen_error(f"a mask of {lanes} lanes is not one register", "masks have 8, 16 or 32 lanes")
    return MASK_LETTERS[lanes]


@cache
def mask_word(bits: int, lanes: int) -> int:
    """The 32-bit predicate word of a mask: lane i is bit i * (32 / lanes)."""
    step = 32 // lanes
    return sum(1 << (i * step) for i in range(lanes) if bits >> i & 1)


def int_text(e: IntImm) -> str:
    t, value = e.dtype, e.value
    if t is INT32 and value != INT32_MIN:
        return str(value)
    if t.bits > 32 and not INT32_MIN <= value < -INT32_MIN:
        raise codegen_error(f"the {t} constant {value} is wider than 32 bits")
    if t is BOOL:
        value = int(bool(value))
    return f"({c_type(t)}){value}"


def is_float32(value: float) -> bool:
    """Whether a number is one of float32."""
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except OverflowError:
        return False


def float_text(e: FloatImm) -> str:
    t, value = e.dtype, e.value
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    if t.bits > 32 and not is_float32(value):
        raise codegen_error(f"the {t} constant {value} is wider than 32 bits")
    mantissa, exponent = value.hex().split("p")
    head, _, fraction = mantissa.partition(".")
    fraction = fraction.rstrip("0")
    text = f"{head}.{fraction}" if fraction else head
    prefix = "" if t.bits == 32 else f"({c_type(t)})"
    return f"{prefix}{text}p{exponent}f/*{value:e}*/"


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def string_text(value: str) -> str:
    """A C string literal. Bytes that cannot be printed are octal escapes, which end after three digits."""
    out = []
    for byte in value.encode("utf-8"):
        char = chr(byte)
        out.append(_ESCAPES.get(char) or (char if 32 <= byte < 127 else f"\\{byte:03o}"))
    return '"' + "".join(out) + '"'
