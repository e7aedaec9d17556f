"""Vector loads and stores."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping

from compass_core import vendor
from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir.dtypes import VOID, DataType
from .args import int32_arg, lanes_arg, pointer_arg, refuse_constant, vector_arg
from .core import Cost, Part, Touch, build_mask, special_op
from .example import Example
from .typing import type_error

GROUP = "Memory"
IN_MEMORY: Mapping[Part, str] = {"definition": "tests/agreement/test_lanes.py has accesses of every width and stride"}
BYTE_OFFSETS: Mapping[Part, str] = {"c": "LowerVectorOperators makes it a builtin with byte offsets", **IN_MEMORY}


def loaded_dtype(pointee: DataType, lanes: object) -> DataType:
    """The vector type of a load through a pointer."""
    if pointee.is_void:
        raise type_error("S.vload: a void pointer cannot be accessed", "retype it with as_ptr")
    if lanes is not None:
        return pointee.with_lanes(lanes_arg(lanes, "S.vload"))
    return pointee if pointee.is_vector else pointee.with_lanes(pointee.native_lanes)


@functools.cache
def store_ok(value: DataType, pointee: DataType) -> None:
    """Refuse to store a vector as bytes of another type; signs may differ, for they are the same bytes.

    The vendor's packages take the memory for elements of the vector's type, and so does this under their names.
    """
    given, kept = value.element_of, pointee.element_of
    if given is kept or kept.is_void or (given.is_integer and kept.is_integer and given.bits == kept.bits):
        return
    message = f"S.vstore: the value is {value}, the pointer {pointee}: the elements differ"
    if vendor.names_in_use:
        logging.getLogger("Compass").warning("%s; its bytes are stored as %s", message, given)
        return
    raise type_error(
        message,
        f'convert the value: S.cast(value, "{kept}"), or store the bytes as they are: ptr.as_ptr("{given}")',
    )


@special_op(
    group=GROUP,
    operands=("ptr", "stride"),
    split="vload",
    effect="read",
    touches=(Touch(0, "r", "lanes"),),
    cost=Cost("load", {"__compass_load": "load", "__compass_load_stride": "gather"}),
    example=Example("S.vstore(S.vload(x, lanes=4, stride=2), out)"),
    exempt=IN_MEMORY,
    arguments={"lanes": "lanes of the result; by default one register, or those of a vector pointer"},
)
def vload(ptr: object, mask: object = None, lanes: object = None, stride: object = 1) -> E.Expr:
    """Load a vector from contiguous or strided elements.

    Lane i is element `i * stride` behind `ptr`, or 0 where the mask is inactive; inactive elements are not read.
    `lanes` defaults to one register for a scalar pointer and to the pointer's own lanes for a vector pointer.
    """
    address = pointer_arg(ptr, "S.vload: ptr")
    result = loaded_dtype(address.pointer_type.elem, lanes)
    step = int32_arg(stride, "S.vload: stride")
    return E.Call("vload", (address, step), result, build_mask(mask, result.lanes))


@special_op(
    group=GROUP,
    operands=("value", "ptr", "stride"),
    split="vstore",
    effect="write",
    touches=(Touch(1, "w", "lanes"),),
    cost=Cost("store", {"__compass_store": "store", "__compass_store_stride": "scatter"}),
    example=Example('S.vstore(S.vload(x), out, mask="3T5F", stride=2)'),
    exempt=IN_MEMORY,
)
def vstore(value: object, ptr: object, mask: object = None, stride: object = 1) -> E.Expr:
    """Store the active lanes of a vector to contiguous or strided elements.

    Lane i goes to element `i * stride` behind `ptr`; inactive elements are not touched. The value has the elements of
    `ptr`, whose sign may be another one: convert it with S.cast, or the pointer with `as_ptr`.
    """
    vector = vector_arg(value, "S.vstore: value")
    address = pointer_arg(ptr, "S.vstore: ptr")
    store_ok(vector.dtype, address.pointer_type.elem)
    refuse_constant(address.pointer_type.scope)
    step = int32_arg(stride, "S.vstore: stride")
    return E.Call("vstore", (vector, address, step), VOID, build_mask(mask, vector.dtype.lanes))


# -------------------------------------------------------------------------------------------------- gather, scatter


def indices_ok(dtype: DataType, what: str) -> None:
    if not (dtype.is_vector and dtype.is_integer and dtype.bits == 16):
        raise type_error(
            f"{what}: indices must be an int16 or uint16 vector, got {dtype}", 'convert them: S.cast(v, "int16")'
        )


def scatter_ok(value: DataType, pointee: DataType, indices: DataType) -> None:
    if value.lanes != indices.lanes:
        raise type_error(f"S.vstore_scatter: the value is {value}, the indices are {indices}: the lanes differ")
    if value.element_of is not pointee.element_of:
        raise type_error(f"S.vstore_scatter: the value is {value}, the pointer {pointee}: the elements differ")


def _known_lanes(e: E.Expr) -> list[int]:
    """The lanes of a vector expression that the kernel text gives as numbers, as they are written."""
    if type(e) is E.Broadcast:
        return _known_lanes(e.value)
    if type(e) is E.VectorLiteral:
        return [n for item in e.elems for n in _known_lanes(item)]
    if type(e) is E.Cast:
        return _known_lanes(e.value)
    return [e.value] if type(e) is E.IntImm else []


def _offsets_ok(offsets: E.Expr, elem: DataType, what: str) -> None:
    """Refuse offsets that 16 bits of bytes do not reach."""
    reach = (1 << 16) // elem.bytes
    for n in _known_lanes(offsets):
        if not 0 <= n < reach:
            raise CompassError(
                f"{what}: the offset {n} is out of reach: {elem} elements are reached from 0 to {reach - 1}",
                code="offset-range",
                help="move the pointer first: ptr + n",
            )


@special_op(
    group=GROUP,
    effect="read",
    cost=Cost("gather", {"__compass_gather": "gather"}),
    example=Example("S.vstore(S.vload_gather(x, S.vload(y)), out)", "i16", "u16", ys=(7, 6, 5, 4)),
    exempt=BYTE_OFFSETS,
)
def vload_gather(ptr: object, indices: object, mask: object = None) -> E.Expr:
    """Load the elements at the 16-bit element offsets `indices` behind `ptr`; inactive lanes are 0.

    The byte offset is unsigned and 16 bits wide, so the reachable span is 64 KiB.
    """
    address = pointer_arg(ptr, "S.vload_gather: ptr")
    offsets = vector_arg(indices, "S.vload_gather: indices")
    indices_ok(offsets.data_type, "S.vload_gather")
    _offsets_ok(offsets, address.pointer_type.elem.element_of, "S.vload_gather")
    result = loaded_dtype(address.pointer_type.elem, offsets.dtype.lanes)
    return E.Call("vload_gather", (address, offsets), result, build_mask(mask, result.lanes))


@special_op(
    group=GROUP,
    effect="write",
    touches=(Touch(1, "w", None),),
    cost=Cost("scatter", {"__compass_scatter": "scatter"}),
    example=Example("S.vstore_scatter(S.vload(x), out, S.vload(y))", "i16", "u16", ys=tuple(range(15, -1, -1))),
    exempt=BYTE_OFFSETS,
)
def vstore_scatter(value: object, ptr: object, indices: object, mask: object = None) -> E.Expr:
    """Store the active lanes at the 16-bit element offsets `indices` behind `ptr`; of equal offsets the highest lane
    wins."""
    vector = vector_arg(value, "S.vstore_scatter: value")
    address = pointer_arg(ptr, "S.vstore_scatter: ptr")
    offsets = vector_arg(indices, "S.vstore_scatter: indices")
    indices_ok(offsets.data_type, "S.vstore_scatter")
    scatter_ok(vector.data_type, address.pointer_type.elem, offsets.data_type)
    _offsets_ok(offsets, vector.data_type.element_of, "S.vstore_scatter")
    refuse_constant(address.pointer_type.scope)
    return E.Call("vstore_scatter", (vector, address, offsets), VOID, build_mask(mask, vector.dtype.lanes))
