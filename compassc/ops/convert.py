"""Conversion operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeGuard

from compass_core.arrays import Array
from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir.dtypes import (
    FLOAT32,
    INT32,
    SCOPES,
    STORAGE,
    UINT32,
    VECTOR_BITS,
    DataType,
    dtype,
    make_dtype,
    pointer_type,
)
from .args import choice, dtype_arg, kind_of
from .core import Cost, Part, imm, scalar_cast, special_op, value_op
from .exact import half_of, wide, wrapped
from .example import Example, unary
from .masks import is_array
from .typing import Number, Operand, Typed, check_conversion, check_literal, is_literal, literal_dtype, type_error

GROUP = "Conversion"
CONVERTS: Mapping[Part, str] = {
    "definition": "tests/agreement/test_casts.py holds every pair of types and part against exact.converted",
    "c": "LowerVectorCast makes the instructions of each pair of types",
}

PARTS = ("all", "low", "high", "even", "odd", "ll", "lh", "hl", "hh")

SPECIAL_FLOATS = ("inf", "-inf", "nan")

_HALF_PARTS = ("low", "high", "even", "odd")

_QUARTER_PARTS = ("ll", "lh", "hl", "hh")

_SMALL_INTS = tuple(dtype(t) for t in ("int8", "uint8", "int16", "uint16"))

_HALVES = tuple(dtype(t) for t in ("float16", "bfloat16"))

_LOSSY = {
    ("uint32", "float32"),
    ("uint32", "float16"),
    ("uint32", "bfloat16"),
    ("float32", "uint32"),
    ("bfloat16", "uint32"),
}


def check_pair(source: DataType, to: DataType) -> None:
    """Refuse a vector conversion that the hardware does not have."""
    source, to = source.element_of, to.element_of
    if source is to:
        return
    if source.is_bool or to.is_bool or to not in STORAGE:
        raise type_error(f"a vector of {source} cannot be converted to {to}", "make masks with a comparison")
    if (source in _SMALL_INTS and to in _HALVES) or (source in _HALVES and to in _SMALL_INTS):
        raise type_error(
            f"there is no vector conversion from {source} to {to}", "convert in two steps, through 32 bits"
        )
    if (str(source), str(to)) in _LOSSY:
        raise type_error(
            f"a vector conversion from {source} to {to} would lose precision", "convert through int32 explicitly"
        )


def _check_saturate(source: DataType, to: DataType, saturate: bool | None) -> None:
    if saturate is None or not source.is_floating or to.is_floating:
        return
    if to.element_of is INT32:
        if saturate is False:
            raise type_error(f"a conversion from {source} to {to} always saturates", "leave saturate out")
    else:
        raise type_error(
            f"saturate cannot be given for {source} to {to}", "convert to int32 first, then narrow with saturate"
        )


@lru_cache(maxsize=4096)
def cast_dtype(source: DataType, count: int, to: DataType, part: str, saturate: bool | None) -> DataType:
    """The result type of a vector cast of `count` inputs of type `source`; raises for what cannot be done."""
    if count > 1:
        return _merge_dtype(source, count, to, part, saturate)
    if source.is_mask:
        raise type_error(f"S.cast: {source} is a mask", "masks cannot be converted")
    check_pair(source, to)
    _check_saturate(source, to, saturate)
    n, given = source.lanes, to.lanes if to.is_vector else None
    ratio = to.bits // source.bits
    if part == "all":
        lanes = n
        if given not in (None, n):
            if to.bits < source.bits and source.is_native and to.is_native:
                lanes = given
            else:
                raise type_error(f"S.cast: {source} cannot become {to}: the lanes differ")
    else:
        parts = {2: _HALF_PARTS, 4: _QUARTER_PARTS}.get(ratio, ())
        if part not in parts:
            raise type_error(
                f"S.cast: part {part!r} does not suit {source} to {to}", f"it takes {', '.join(('all', *parts))}"
            )
        if not source.is_native:
            raise type_error(f"S.cast: part {part!r} needs a vector of one register, got {source}")
        lanes = n // ratio
        if given not in (None, lanes):
            raise type_error(f"S.cast: part {part!r} of {source} gives {lanes} lanes, not {to}")
    return to.with_lanes(lanes)


def _merge_dtype(source: DataType, count: int, to: DataType, part: str, saturate: bool | None) -> DataType:
    check_pair(source, to)
    _check_saturate(source, to, saturate)
    if to.bits * 2 != source.bits and to.bits * 4 != source.bits:
        raise type_error(
            f"S.cast: {count} vectors of {source} cannot be merged into {to}", "only narrowing to 1/2 or 1/4 merges"
        )
    if part != "all":
        raise type_error(f"S.cast: a merge takes part 'all' only, got {part!r}")
    result = to if to.is_vector else to.with_lanes(source.lanes * count)
    if not (source.is_native and result.is_native):
        raise type_error(
            f"S.cast: {count} vectors of {source} do not fill {result}", "inputs and result must be registers"
        )
    if source.lanes * count > result.lanes:
        raise type_error(f"S.cast: {count} vectors of {source} are more than {result} holds")
    return result


def check_options(x: object, part: object, saturate: object) -> object:
    """The value argument with its shorthands resolved, and the options checked."""
    if isinstance(x, str):
        if x.lower() not in SPECIAL_FLOATS:
            raise CompassError(f"S.cast: the string must be one of {', '.join(SPECIAL_FLOATS)}, got {x!r}", code="type")
        x = float(x)
    elif is_array(x) and x.ndim:
        x = x.reshape(-1).tolist()
    choice(part, PARTS, "S.cast: part")
    if saturate is not None and saturate is not True and saturate is not False:
        raise CompassError(f"S.cast: saturate must be None, True or False, got {saturate!r}", code="option")
    return x


def no_saturate(saturate: object) -> None:
    if saturate is not None:
        raise type_error("S.cast: saturate cannot be set for scalars and vector literals")


def list_of(x: Sequence[object]) -> list[object]:
    items = list(x)
    if len(items) < 2:
        raise type_error(f"S.cast: a list needs at least 2 items, got {len(items)}")
    return items


def literal_lanes(count: int, to: DataType) -> DataType:
    if to.is_bool:
        raise type_error("S.cast: a vector literal of bool is not possible", "use S.const_mask")
    if to.is_vector and to.lanes != count:
        raise type_error(f"S.cast: {to} needs {to.lanes} items, got {count}")
    return to.with_lanes(count)


def _build_scalar(x: E.Expr | Number, to: DataType) -> E.Expr:
    elem = to.element_of
    if is_literal(x):
        check_conversion(x, elem)
        e: E.Expr = E.IntImm(elem, int(x != 0)) if elem.is_bool else imm(x, elem)
    else:
        e = scalar_cast(x, elem)
    if to.is_scalar:
        return e
    if elem.is_bool and type(e) is E.IntImm:
        return E.ConstMask((1 << to.lanes) - 1 if e.value else 0, to.lanes)
    return E.Broadcast(e, to.lanes)


def _is_scalar(x: object) -> TypeGuard[E.Expr | Number]:
    return is_literal(x) or (isinstance(x, E.Expr) and isinstance(x.dtype, DataType) and x.dtype.is_scalar)


def _build_cast_list(items: list[object], to: DataType, part: str, saturate: bool | None) -> E.Expr:
    scalars: list[E.Expr | Number] = [i for i in items if _is_scalar(i)]
    if len(scalars) == len(items):
        no_saturate(saturate)
        for i in scalars:
            check_literal(i, to)
        elems = tuple(imm(i, literal_dtype(i)) if is_literal(i) else i for i in scalars)
        return E.VectorLiteral(literal_lanes(len(items), to), elems)
    vectors, types = [], []
    for item in items:
        if not isinstance(item, E.Expr) or not isinstance(item.dtype, DataType):
            raise type_error(f"S.cast: all items of a merge must be vector variables, got {kind_of(item)}")
        vectors.append(item)
        types.append(item.dtype)
    check_merge(types)
    result = cast_dtype(types[0], len(items), to, part, saturate)
    return E.Call("cast", tuple(vectors), result, attrs=(("part", part), ("saturate", saturate)))


def check_merge(types: list[DataType]) -> None:
    if len(set(types)) != 1 or types[0].is_scalar or types[0].is_mask:
        raise type_error(f"S.cast: the items of a merge must be equal vector types, got {', '.join(types)}")


@special_op(
    group=GROUP,
    operands=("*x",),
    options=("part", "saturate"),
    split="cast",
    cost=Cost("convert", {"__vcvt*": "convert", "__vsxt*": "convert", "__vuxt*": "convert", "convert_int8": "convert"}),
    example=Example('S.vstore(S.cast(S.vload(x), "i32", part="even"), out)', "i16", out="i32"),
    exempt=CONVERTS,
    arguments={
        "dtype": "the type to convert to; without a lane count it keeps that of x",
        "part": '`"all"`, a half (`"low"`, `"high"`, `"even"`, `"odd"`) or a quarter (`"ll"`, `"lh"`, `"hl"`, `"hh"`)',
        "saturate": "clip integers to the range of the new type instead of wrapping",
    },
    types={
        "part": 'Literal["all", "low", "high", "even", "odd", "ll", "lh", "hl", "hh"]',
        "saturate": "_bool | None",
    },
)
def cast(x: object, dtype: object, part: str = "all", saturate: bool | None = None) -> E.Expr:
    """Convert a scalar, a vector, a list of scalars (vector literal) or a list of vectors (merge) to another type.

    A dtype without lanes keeps the lanes of a vector. `part` takes the low, high, even or odd half, or a quarter, of a
    register for a widening conversion. `saturate` clips integers instead of wrapping them.
    """
    to = dtype_arg(dtype, "S.cast")
    x = check_options(x, part, saturate)
    if isinstance(x, (list, tuple)):
        return _build_cast_list(list_of(x), to, part, saturate)
    if _is_scalar(x):
        no_saturate(saturate)
        return _build_scalar(x, to)
    if not isinstance(x, E.Expr) or not isinstance(x.dtype, DataType):
        raise type_error(
            f"S.cast: {kind_of(x)} cannot be converted", "a number, a scalar, a vector or a list is expected"
        )
    result = cast_dtype(x.dtype, 1, to, part, saturate)
    if result is x.dtype:
        return x
    return E.Call("cast", (x,), result, attrs=(("part", part), ("saturate", saturate)))


# ----------------------------------------------------------------------------------------------- sign, bits, extension


def _with_sign_of(name: str, x: object, signed: bool) -> E.Expr:
    found = x.dtype if isinstance(x, E.Expr) else None
    if not isinstance(found, DataType) or not found.is_integer or found.is_bool:
        raise type_error(f"S.{name} needs an integer variable or expression, got {kind_of(x)}")
    return cast.expr(x, with_sign(found, signed))


def with_sign(t: DataType, signed: bool) -> DataType:
    return t.with_int() if signed else t.with_uint()


@special_op(
    group=GROUP,
    cost=Cost("free"),
    example=Example("S.vstore(S.i(S.vload(x)), out)", "u32", out="i32", xs=(1, 2**32 - 1)),
    exempt=CONVERTS,
)
def i(x: object) -> E.Expr:
    """Convert an integer to the signed type of the same width; wraps."""
    return _with_sign_of("i", x, True)


@special_op(
    group=GROUP,
    cost=Cost("free"),
    example=Example("S.vstore(S.u(S.vload(x)), out)", "i32", out="u32"),
    exempt=CONVERTS,
)
def u(x: object) -> E.Expr:
    """Convert an integer to the unsigned type of the same width; wraps."""
    return _with_sign_of("u", x, False)


_REINTERPRET_SCOPES = ("private", "global", "lsram", "shared")


def pointer_target(text: object) -> tuple[DataType, str] | None:
    """Pointee type and scope of a pointer target such as `lsram i8*`; None when the text names no pointer."""
    if not isinstance(text, str) or isinstance(text, DataType) or ("*" not in text and " " not in text.strip()):
        return None
    words = text.replace("*", " ").split()
    if not 1 <= len(words) <= 2 or text.count("*") > 1:
        raise type_error(f"S.reinterpret: {text!r} is not a type", 'write e.g. "u32", "i16x16" or "global fp32*"')
    scope = words[0] if len(words) == 2 else "global"
    if scope not in _REINTERPRET_SCOPES:
        known = ", ".join(_REINTERPRET_SCOPES)
        why = "not supported here" if scope in SCOPES else "not a scope"
        raise type_error(f"S.reinterpret: {scope!r} is {why}", f"use one of {known}")
    return dtype_arg(words[-1], "S.reinterpret"), scope


def reinterpret_dtype(source: Operand, target: object) -> DataType:
    """The checked target of a reinterpretation of a value; a scalar element name keeps the width of a vector."""
    to = dtype_arg(target, "S.reinterpret")
    if is_literal(source):
        own = UINT32 if type(source) is int and source > INT32.range()[1] else literal_dtype(source)
        source = INT32 if own.is_bool else own
    if source.is_bool or to.is_bool or to.is_void:
        raise type_error(f"S.reinterpret: {source} cannot become {to}: bools and masks have no bit pattern")
    if source.is_vector and source.total_bits % VECTOR_BITS:
        raise type_error(f"S.reinterpret: {source} does not fill whole registers")
    if source.total_bits != to.total_bits:
        raise type_error(f"S.reinterpret: {source} has {source.total_bits} bits, {to} has {to.total_bits}")
    return to


def address_dtype(pointer: object, dtype: object) -> DataType:
    """The type that a pointer's number is asked for. `pointer`: what `pointer_target` says of it."""
    if pointer is not None:
        raise type_error("S.reinterpret: a pointer is retyped with p.as_ptr(dtype)")
    to = dtype_arg(dtype, "S.reinterpret")
    if to not in (INT32, UINT32):
        raise type_error(f"S.reinterpret: a pointer becomes a 32-bit integer, not {to}")
    return to


@special_op(
    group=GROUP,
    cost=Cost("free", {"as_*": "free"}),
    example=Example('S.vstore(S.reinterpret(S.vload(x), "i32x8"), out)', "fp32", out="i32"),
    exempt={"definition": "the bits stay: tests/ops/test_convert.py", "c": "an IR node of its own"},
)
def reinterpret(x: object, dtype: object) -> E.Expr:
    """Use the bit pattern of a value as another type of the same total width.

    A pointer becomes a 32-bit integer; an integer becomes a pointer with a target such as `"lsram i8*"`.
    """
    pointer = pointer_target(dtype)
    if isinstance(x, E.Expr) and not isinstance(x.dtype, DataType):
        return E.Reinterpret(address_dtype(pointer, dtype), x)
    if pointer is not None:
        address = imm(x, INT32) if type(x) is int else x
        if not isinstance(address, E.Expr) or not (address.dtype.is_scalar and address.dtype.is_integer):
            raise type_error(f"S.reinterpret: an address is an integer scalar, got {kind_of(x)}")
        return E.Pointer(pointer[0], E.Reinterpret(pointer_type(*pointer), address), E.IntImm(INT32, 0))
    if is_literal(x):
        to = reinterpret_dtype(x, dtype)
        own = FLOAT32 if type(x) is float else UINT32 if x > INT32.range()[1] else INT32
        return E.Reinterpret(to, imm(x, own))
    if not isinstance(x, E.Expr) or not isinstance(x.dtype, DataType):
        raise type_error(f"S.reinterpret: {kind_of(x)} is not a value")
    return E.Reinterpret(reinterpret_dtype(x.dtype, dtype), x)


def _typed_extend(operands: list[Operand]) -> Typed:
    (x,) = operands
    if is_literal(x) or not x.is_vector:
        raise type_error("the argument must be a vector")
    if not x.is_native or x.is_mask:
        raise type_error(f"{x} is not one register of integers")
    if not x.is_integer or x.bits == 32:
        raise type_error(f"{x} cannot be extended", "int8, uint8, int16 and uint16 vectors can")
    return Typed((x,), make_dtype(x.type_code, x.bits * 2, x.lanes // 2))


@value_op(
    group=GROUP,
    parameters="x",
    typing=_typed_extend,
    c=[("signed", "__vsxtl({x})"), "__vuxtl({x})"],
    split="none",
    cost=Cost("convert"),
    example=unary("i16", out="i32"),
)
def vxtl(x: Array, to: DataType) -> Array:
    """Extend the low half of an integer register to elements twice as wide."""
    return wrapped(wide(half_of(x, "low")), to)


@value_op(
    group=GROUP,
    parameters="x",
    typing=_typed_extend,
    c=[("signed", "__vsxth({x})"), "__vuxth({x})"],
    split="none",
    cost=Cost("convert"),
    example=unary("i16", out="i32"),
)
def vxth(x: Array, to: DataType) -> Array:
    """Extend the high half of an integer register to elements twice as wide."""
    return wrapped(wide(half_of(x, "high")), to)


@special_op(
    group=GROUP,
    operands=("node",),
    options=("tag",),
    cost=Cost("free"),
    example=Example('S.vstore(S.tag(S.cast(S.vload(x), "fp32"), "no_zip"), out)', "fp16", out="fp32", lanes=16),
    exempt=CONVERTS,
    types={"node": "_T", "attr": "str"},
    returns="_T",
)
def tag(node: object, attr: object) -> E.Expr:
    """Attach a hint to the result of an operation. `no_zip` on a cast from a 16-bit float to float32 lets X2 deliver
    even lanes before odd ones; PySim keeps the order."""
    if attr != "no_zip":
        raise CompassError(f"S.tag: {attr!r} is not a tag", code="option", help='the only tag is "no_zip"')
    if type(node) is not E.Call:
        raise type_error("S.tag: a direct result of S.cast is expected")
    if node.op != "cast":
        raise type_error(f"S.tag: no_zip applies to S.cast, not to S.{node.op}")
    return E.Call("tag", (node,), node.dtype, attrs=(("tag", attr),))
