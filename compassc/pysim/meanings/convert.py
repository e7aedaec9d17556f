"""Conversions."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.ir.dtypes import FLOAT32, INT32, UINT32, DataType
from compassc.language.dispatch import LOCAL
from compassc.ops.args import dtype_arg
from compassc.ops.convert import (
    address_dtype,
    cast_dtype,
    check_merge,
    check_options,
    list_of,
    literal_lanes,
    no_saturate,
    pointer_target,
    reinterpret_dtype,
    with_sign,
)
from compassc.ops.numeric import convert, filled_up, literal, np_dtype, part_of
from compassc.ops.typing import is_literal, type_error

from ..memory import PyPointer, index_of
from ..values import PyVar, Scalar, python_number, pyvar, to_element
from . import meaning


@meaning
def cast(x: object, dtype: object, part: str = "all", saturate: bool | None = None) -> Scalar:
    if type(x) is PyVar and x.dtype.is_vector:
        key = (x.dtype, str(dtype), part, saturate)
        plan = _VECTOR_CASTS.get(key)
        if plan is None:
            to = dtype_arg(dtype, "S.cast")
            check_options(x, part, saturate)
            plan = _VECTOR_CASTS[key] = to, cast_dtype(x.dtype, 1, to, part, saturate)
        return _cast_vector(x, *plan, part, bool(saturate))
    to = dtype_arg(dtype, "S.cast")
    x = python_number(check_options(x, part, saturate))
    if isinstance(x, (list, tuple)):
        return _cast_list(list_of(x), to, part, saturate)
    if is_literal(x) or (type(x) is PyVar and x.dtype.is_scalar):
        no_saturate(saturate)
        return pyvar(x, to)
    raise type_error(f"S.cast: {x!r} cannot be converted", "a number, a scalar, a vector or a list is expected")


_VECTOR_CASTS: dict[object, tuple[DataType, DataType]] = {}
"""Source, dtype argument, part, saturate -> target and result type."""


def _cast_vector(x: PyVar, to: DataType, result: DataType, part: str, saturate: bool) -> PyVar:
    if result is x.dtype:
        return x
    source = part_of(x.value, part)
    v = convert(source, x.dtype, to, saturate)
    return PyVar(v if v.size == result.lanes else filled_up(v, 1, x.dtype, result), result)


def _cast_list(items: list[object], to: DataType, part: str, saturate: bool | None) -> PyVar:
    if all(is_literal(i) or (type(i) is PyVar and i.dtype.is_scalar) for i in items):
        no_saturate(saturate)
        result = literal_lanes(len(items), to)
        return PyVar(np.array([to_element(i, to.element_of) for i in items], np_dtype(to)), result)
    vectors = []
    for item in items:
        if type(item) is not PyVar:
            raise type_error(f"S.cast: all items of a merge must be vector variables, got {item!r}")
        vectors.append(item)
    check_merge([v.dtype for v in vectors])
    source = vectors[0].dtype
    result = cast_dtype(source, len(items), to, part, saturate)
    v = np.concatenate([convert(i.value, source, to, bool(saturate)) for i in vectors])
    return PyVar(filled_up(v, len(items), source, result), result)


def _sim_sign(x: object, name: str, signed: bool) -> Scalar:
    found = getattr(x, "dtype", None)
    if not isinstance(found, DataType) or not found.is_integer or found.is_bool:
        raise type_error(f"S.{name} needs an integer variable or expression, got {x!r}")
    return cast(x, with_sign(found, signed))


@meaning
def i(x: object) -> Scalar:
    return _sim_sign(x, "i", True)


@meaning
def u(x: object) -> Scalar:
    return _sim_sign(x, "u", False)


@meaning
def reinterpret(x: object, dtype: object) -> Scalar | PyPointer:
    pointer = pointer_target(dtype)
    if isinstance(x, PyPointer):
        to = address_dtype(pointer, dtype)
        return pyvar(np_dtype(UINT32).type(LOCAL.tec.session.addresses.number(x)), to)
    if pointer is not None:
        held: PyPointer = LOCAL.tec.session.addresses.pointer(index_of(x, "S.reinterpret: an address"), *pointer)
        return held
    if is_literal(x):
        to = reinterpret_dtype(x, dtype)
        own = FLOAT32 if type(x) is float else UINT32 if x > INT32.range()[1] else INT32
        return PyVar(literal(x, own).view(np_dtype(to)), to)
    if type(x) is not PyVar:
        raise type_error(f"S.reinterpret: {type(x).__name__} is not a value")
    to = reinterpret_dtype(x.dtype, dtype)
    return PyVar(x.value.view(np_dtype(to)), to)


@meaning
def vxtl(x: Array, dtype: DataType) -> Array:
    return x[: x.size // 2].astype(np_dtype(dtype))


@meaning
def vxth(x: Array, dtype: DataType) -> Array:
    return x[x.size // 2 :].astype(np_dtype(dtype))


@meaning
def tag(node: object, attr: object) -> object:
    return node
