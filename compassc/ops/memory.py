"""Vector loads and stores."""

from __future__ import annotations

import functools
import logging
from typing import Any

from compass_core import vendor
from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir.dtypes import VOID, DataType
from .args import int32_arg, lanes_arg, pointer_arg, refuse_constant, vector_arg
from .core import LazyModule, build_mask, np, special_op
from .typing import type_error

GROUP = "Memory"

values: Any = LazyModule("compassc.pysim.values")
mem: Any = LazyModule("compassc.pysim.memory")
masks: Any = LazyModule("compassc.pysim.masks")


def loaded_dtype(pointee: DataType, lanes: Any) -> DataType:
    """The vector type of a load through a pointer."""
    if pointee.is_void:
        raise type_error("S.vload: a void pointer cannot be accessed", "retype it with as_ptr")
    if lanes is not None:
        return pointee.with_lanes(lanes_arg(lanes, "S.vload"))
    return pointee if pointee.is_vector else pointee.with_lanes(pointee.native_lanes)


def _build_vload(ptr: Any, mask: Any = None, lanes: Any = None, stride: Any = 1) -> E.Expr:
    address = pointer_arg(ptr, "S.vload: ptr")
    result = loaded_dtype(address.dtype.elem, lanes)
    step = int32_arg(stride, "S.vload: stride")
    return E.Call("vload", (address, step), result, build_mask(mask, result.lanes))


@functools.cache
def _store_ok(value: DataType, pointee: DataType) -> None:
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


def _build_vstore(value: Any, ptr: Any, mask: Any = None, stride: Any = 1) -> E.Expr:
    vector = vector_arg(value, "S.vstore: value")
    address = pointer_arg(ptr, "S.vstore: ptr")
    _store_ok(vector.dtype, address.dtype.elem)
    refuse_constant(address.dtype.scope)
    step = int32_arg(stride, "S.vstore: stride")
    return E.Call("vstore", (vector, address, step), VOID, build_mask(mask, vector.dtype.lanes))


def stride_value(stride: Any, what: str) -> int:
    """The stride of a PySim access."""
    step = stride if type(stride) is int else mem.index_of(stride, f"{what}: stride")
    if step < 1:
        raise CompassError(f"{what}: the stride must be at least 1, got {step}", code="stride")
    return step


def last_active(active: Any) -> int:
    """The highest true lane; -1 when there is none."""
    found = np.flatnonzero(active)
    return int(found[-1]) if found.size else -1


_DEFAULT: dict[DataType, DataType] = {}
"""Pointee type -> vector type of a load without lanes (PySim's hot path)."""


def _loaded_at(ptr: Any, step: int) -> Any:
    """`S.vload(ptr + step)` in PySim."""
    result = _DEFAULT.get(ptr.dtype)
    found = None if result is None else ptr.window(result.element_of, step, result.lanes)
    return vload.meaning(ptr.moved(step)) if found is None else values.PyVar(found.copy(), result)


@special_op(GROUP, _build_vload, split="vload", effect="read", at=_loaded_at)
def vload(ptr: Any, mask: Any = None, lanes: Any = None, stride: Any = 1) -> Any:
    """Load a vector from contiguous or strided elements.

    Lane i is element `i * stride` behind `ptr`, or 0 where the mask is inactive; inactive elements are not read.
    `lanes` defaults to one register for a scalar pointer and to the pointer's own lanes for a vector pointer.
    """
    if type(ptr) is not mem.PyPointer:
        ptr = mem.pointer_of(ptr, "S.vload: ptr")
    result = _DEFAULT.get(ptr.dtype) if lanes is None else None
    if mask is None and result is not None and type(stride) is int and stride == 1:
        return ptr.load(0, 1, 1, result, "S.vload")
    if result is None:
        result = loaded_dtype(ptr.dtype, lanes)
        if lanes is None:
            _DEFAULT[ptr.dtype] = result
    count = result.lanes
    view, base = ptr.elements()
    step = 1 if type(stride) is int and stride == 1 else stride_value(stride, "S.vload")
    stop = base + (count - 1) * step + 1
    if mask is None:
        if base < 0 or stop > len(view):
            raise mem.bounds_error("S.vload", ptr, 0, (count - 1) * step)
        if ptr.storage.watch is not None:
            ptr.watched("S.vload", 0, count, step, False)
        return values.PyVar(view[base:stop:step].copy(), result)
    active = masks.mask_array(mask, count)
    if ptr.storage.watch is not None:
        ptr.watched("S.vload", 0, count, step, False, active)
    if base >= 0 and stop <= view.size:
        out = np.zeros(count, view.dtype)
        np.copyto(out, view[base:stop:step], where=active)
        return values.PyVar(out, result)
    top = last_active(active)
    out = np.zeros(count, view.dtype)
    if top >= 0:
        if base < 0 or base + top * step >= view.size:
            raise mem.bounds_error("S.vload", ptr, 0, top * step)
        np.copyto(out[: top + 1], view[base : base + top * step + 1 : step], where=active[: top + 1])
    return values.PyVar(out, result)


def _stored_at(value: Any, ptr: Any, step: int) -> None:
    """`S.vstore(value, ptr + step)` in PySim."""
    if type(value) is values.PyVar and value.dtype.is_vector and ptr.scope != "constant":
        found = ptr.window(value.dtype.element_of, step, value.dtype.lanes)
        if found is not None:
            found[:] = value.value
            return
    vstore.meaning(value, ptr.moved(step))


@special_op(GROUP, _build_vstore, split="vstore", effect="write", at=_stored_at)
def vstore(value: Any, ptr: Any, mask: Any = None, stride: Any = 1) -> None:
    """Store the active lanes of a vector to contiguous or strided elements.

    Lane i goes to element `i * stride` behind `ptr`; inactive elements are not touched. The value has the elements of
    `ptr`, whose sign may be another one: convert it with S.cast, or the pointer with `as_ptr`.
    """
    if type(ptr) is not mem.PyPointer:
        ptr = mem.pointer_of(ptr, "S.vstore: ptr")
    refuse_constant(ptr.scope)
    if type(value) is not values.PyVar or value.dtype.is_scalar or value.dtype.is_mask:
        raise type_error(f"S.vstore: value must be a vector, got {value!r}", "write p[i] = value for a scalar")
    dtype = value.dtype
    if ptr.dtype.element_of is dtype.element_of:
        view, base = ptr.elements()
    else:
        _store_ok(dtype, ptr.dtype)
        view, base = ptr.elements(dtype.element_of)
    if mask is None and type(stride) is int and stride == 1 and base >= 0 and ptr.storage.watch is None:
        stop = base + dtype.lanes
        if stop <= len(view):
            view[base:stop] = value.value
            return
    step = 1 if type(stride) is int and stride == 1 else stride_value(stride, "S.vstore")
    active = None if mask is None else masks.mask_array(mask, dtype.lanes)
    top = dtype.lanes - 1
    stop = base + top * step + 1
    if active is not None and (base < 0 or stop > len(view)):  # inactive lanes may lie outside
        top = last_active(active)
        if top < 0:
            return
        stop = base + top * step + 1
    if base < 0 or stop > len(view):
        raise mem.bounds_error("S.vstore", ptr.as_ptr(dtype), 0, top * step)
    if ptr.storage.watch is not None:
        ptr.as_ptr(dtype).watched("S.vstore", 0, dtype.lanes, step, True, active)
    if active is None:
        view[base:stop:step] = value.value
    else:
        np.copyto(view[base:stop:step], value.value[: top + 1], where=active[: top + 1])


# -------------------------------------------------------------------------------------------------- gather, scatter


def _indices_ok(dtype: DataType, what: str) -> None:
    if not (dtype.is_vector and dtype.is_integer and dtype.bits == 16):
        raise type_error(
            f"{what}: indices must be an int16 or uint16 vector, got {dtype}", 'convert them: S.cast(v, "int16")'
        )


def _scatter_ok(value: DataType, pointee: DataType, indices: DataType) -> None:
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


def _build_gather(ptr: Any, indices: Any, mask: Any = None) -> E.Expr:
    address = pointer_arg(ptr, "S.vload_gather: ptr")
    offsets = vector_arg(indices, "S.vload_gather: indices")
    _indices_ok(offsets.dtype, "S.vload_gather")
    _offsets_ok(offsets, address.dtype.elem.element_of, "S.vload_gather")
    result = loaded_dtype(address.dtype.elem, offsets.dtype.lanes)
    return E.Call("vload_gather", (address, offsets), result, build_mask(mask, result.lanes))


def _build_scatter(value: Any, ptr: Any, indices: Any, mask: Any = None) -> E.Expr:
    vector = vector_arg(value, "S.vstore_scatter: value")
    address = pointer_arg(ptr, "S.vstore_scatter: ptr")
    offsets = vector_arg(indices, "S.vstore_scatter: indices")
    _indices_ok(offsets.dtype, "S.vstore_scatter")
    _scatter_ok(vector.dtype, address.dtype.elem, offsets.dtype)
    _offsets_ok(offsets, vector.dtype.element_of, "S.vstore_scatter")
    refuse_constant(address.dtype.scope)
    return E.Call("vstore_scatter", (vector, address, offsets), VOID, build_mask(mask, vector.dtype.lanes))


def gather_positions(ptr: Any, indices: Any, mask: Any, what: str) -> tuple[Any, Any, Any]:
    """The storage's elements, the element index per lane (byte offsets wrap at 64 KiB), and the active lanes."""
    view, base = ptr.elements()
    size = ptr.dtype.bytes
    offsets = (indices.value.astype(np.int64) * size % 65536) // size
    active = masks.mask_array(mask, indices.dtype.lanes)
    used = offsets if active is None else offsets[active]
    if used.size and (base + int(used.min()) < 0 or base + int(used.max()) >= view.size):
        raise mem.bounds_error(what, ptr, int(used.min()), int(used.max()))
    if ptr.storage.watch is not None:
        for offset in used.tolist():
            ptr.watched(what, offset, 1, 1, what == "S.vstore_scatter")
    return view, base + offsets, active


def _sim_vector(x: Any, what: str) -> DataType:
    if type(x) is not values.PyVar or x.dtype.is_scalar:
        raise type_error(f"{what} must be a vector, got {x!r}")
    return x.dtype


@special_op(GROUP, _build_gather, split="vload_gather", effect="read")
def vload_gather(ptr: Any, indices: Any, mask: Any = None) -> Any:
    """Load the elements at the 16-bit element offsets `indices` behind `ptr`; inactive lanes are 0.

    The byte offset is unsigned and 16 bits wide, so the reachable span is 64 KiB.
    """
    ptr = mem.pointer_of(ptr, "S.vload_gather: ptr")
    _indices_ok(_sim_vector(indices, "S.vload_gather: indices"), "S.vload_gather")
    view, positions, active = gather_positions(ptr, indices, mask, "S.vload_gather")
    result = loaded_dtype(ptr.dtype, indices.dtype.lanes)
    if active is None:
        return values.PyVar(view[positions], result)
    out = np.zeros(result.lanes, view.dtype)
    out[active] = view[positions[active]]
    return values.PyVar(out, result)


@special_op(GROUP, _build_scatter, split="vstore_scatter", effect="write")
def vstore_scatter(value: Any, ptr: Any, indices: Any, mask: Any = None) -> None:
    """Store the active lanes at the 16-bit element offsets `indices` behind `ptr`; of equal offsets the highest lane
    wins."""
    ptr = mem.pointer_of(ptr, "S.vstore_scatter: ptr")
    refuse_constant(ptr.scope)
    _indices_ok(_sim_vector(indices, "S.vstore_scatter: indices"), "S.vstore_scatter")
    _scatter_ok(_sim_vector(value, "S.vstore_scatter: value"), ptr.dtype, indices.dtype)
    view, positions, active = gather_positions(ptr, indices, mask, "S.vstore_scatter")
    if active is None:
        view[positions] = value.value
    else:
        view[positions[active]] = value.value[active]
