"""Vector loads and stores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.operators import wrap
from compassc.ir.dtypes import DataType
from compassc.language.dispatch import LOCAL
from compassc.ops.args import refuse_constant
from compassc.ops.atomics import check_place
from compassc.ops.memory import indices_ok, loaded_dtype, scatter_ok, store_ok
from compassc.ops.typing import type_error

from ..masks import mask_array
from ..memory import PyPointer, bounds_error, index_of, pointer_of
from ..values import PyVar, to_element
from . import meaning


def stride_value(stride: object, what: str) -> int:
    """The stride of a PySim access."""
    step = stride if type(stride) is int else index_of(stride, f"{what}: stride")
    if step < 1:
        raise CompassError(f"{what}: the stride must be at least 1, got {step}", code="stride")
    return step


def last_active(active: Array) -> int:
    """The highest true lane; -1 when there is none."""
    found = np.flatnonzero(active)
    return int(found[-1]) if found.size else -1


_DEFAULT: dict[DataType, DataType] = {}
"""Pointee type -> vector type of a load without lanes."""


def loaded_at(ptr: PyPointer, step: int) -> PyVar:
    """`S.vload(ptr + step)` in PySim."""
    result = _DEFAULT.get(ptr.dtype)
    found = None if result is None else ptr.window(result.element_of, step, result.lanes)
    if result is None or found is None:
        return vload(ptr.moved(step))
    return PyVar(found.copy(), result)


@meaning
def vload(ptr: object, mask: object = None, lanes: object = None, stride: object = 1) -> PyVar:
    ptr = ptr if type(ptr) is PyPointer else pointer_of(ptr, "S.vload: ptr")
    result = _DEFAULT.get(ptr.dtype) if lanes is None else None
    if mask is None and result is not None and type(stride) is int and stride == 1:
        return ptr.load(0, 1, 1, result, "S.vload")
    if result is None:
        result = loaded_dtype(ptr.dtype, lanes)
        if lanes is None:
            _DEFAULT[ptr.dtype] = result
    count = result.lanes
    view, base = ptr.elements()
    storage = ptr.storage
    assert storage is not None
    step = 1 if type(stride) is int and stride == 1 else stride_value(stride, "S.vload")
    stop = base + (count - 1) * step + 1
    active = None if mask is None else mask_array(mask, count)
    if active is None:
        if base < 0 or stop > len(view):
            raise bounds_error("S.vload", ptr, 0, (count - 1) * step)
        if storage.watch is not None:
            ptr.watched("S.vload", 0, count, step, False)
        return PyVar(view[base:stop:step].copy(), result)
    if storage.watch is not None:
        ptr.watched("S.vload", 0, count, step, False, active)
    if base >= 0 and stop <= view.size:
        out = np.zeros(count, view.dtype)
        np.copyto(out, view[base:stop:step], where=active)
        return PyVar(out, result)
    top = last_active(active)
    out = np.zeros(count, view.dtype)
    if top >= 0:
        if base < 0 or base + top * step >= view.size:
            raise bounds_error("S.vload", ptr, 0, top * step)
        np.copyto(out[: top + 1], view[base : base + top * step + 1 : step], where=active[: top + 1])
    return PyVar(out, result)


def stored_at(value: PyVar, ptr: PyPointer, step: int) -> None:
    """`S.vstore(value, ptr + step)` in PySim."""
    if type(value) is PyVar and value.dtype.is_vector and ptr.scope != "constant":
        found = ptr.window(value.dtype.element_of, step, value.dtype.lanes)
        if found is not None:
            found[:] = value.value
            return
    vstore(value, ptr.moved(step))


@meaning
def vstore(value: object, ptr: object, mask: object = None, stride: object = 1) -> None:
    ptr = ptr if type(ptr) is PyPointer else pointer_of(ptr, "S.vstore: ptr")
    refuse_constant(ptr.scope)
    if type(value) is not PyVar or value.dtype.is_scalar or value.dtype.is_mask:
        raise type_error(f"S.vstore: value must be a vector, got {value!r}", "write p[i] = value for a scalar")
    dtype = value.dtype
    if ptr.dtype.element_of is dtype.element_of:
        view, base = ptr.elements()
    else:
        store_ok(dtype, ptr.dtype)
        view, base = ptr.elements(dtype.element_of)
    storage = ptr.storage
    assert storage is not None
    if mask is None and type(stride) is int and stride == 1 and base >= 0 and storage.watch is None:
        stop = base + dtype.lanes
        if stop <= len(view):
            view[base:stop] = value.value
            return
    step = 1 if type(stride) is int and stride == 1 else stride_value(stride, "S.vstore")
    active = None if mask is None else mask_array(mask, dtype.lanes)
    top = dtype.lanes - 1
    stop = base + top * step + 1
    if active is not None and (base < 0 or stop > len(view)):  # inactive lanes may lie outside
        top = last_active(active)
        if top < 0:
            return
        stop = base + top * step + 1
    if base < 0 or stop > len(view):
        raise bounds_error("S.vstore", ptr.as_ptr(dtype), 0, top * step)
    if storage.watch is not None:
        ptr.as_ptr(dtype).watched("S.vstore", 0, dtype.lanes, step, True, active)
    if active is None:
        view[base:stop:step] = value.value
    else:
        np.copyto(view[base:stop:step], value.value[: top + 1], where=active[: top + 1])


def gather_positions(ptr: PyPointer, indices: PyVar, mask: object, what: str) -> tuple[Array, Array, Array | None]:
    """The storage's elements, the element index per lane (byte offsets wrap at 64 KiB), and the active lanes."""
    view, base = ptr.elements()
    size = ptr.dtype.bytes
    offsets = (indices.value.astype(np.int64) * size % 65536) // size
    active = mask_array(mask, indices.dtype.lanes)
    used = offsets if active is None else offsets[active]
    if used.size and (base + int(used.min()) < 0 or base + int(used.max()) >= view.size):
        raise bounds_error(what, ptr, int(used.min()), int(used.max()))
    if ptr.storage is not None and ptr.storage.watch is not None:
        for offset in used.tolist():
            ptr.watched(what, offset, 1, 1, what == "S.vstore_scatter")
    return view, base + offsets, active


def _atomic(name: str, ptr: object, change: Callable[..., int], *values: object) -> PyVar:
    """Replaces the integer at a pointer by `change(old, *values)`, and gives what it was."""
    what = f"S.{name}"
    p = pointer_of(ptr, f"{what}: ptr")
    check_place(what, p.dtype, p.scope)
    elem = p.dtype
    operands = [_integer(x, elem, what) for x in values]
    view, base = p.elements()
    if not 0 <= base < len(view):
        raise bounds_error(what, p, 0, 0)
    with LOCAL.tec.session.atomic:
        if p.storage is not None and p.storage.watch is not None:
            p.watched(what, 0, 1, 1, True, atomic=True)
        old = view[base]
        view[base] = wrap(change(int(old), *operands), elem.bits, elem.is_int)
    return PyVar(old, elem)


def _integer(x: object, elem: DataType, what: str) -> int:
    """An integer operand as the memory holds it."""
    if type(x) is int or (type(x) is PyVar and x.dtype.is_scalar and x.dtype.is_integer):
        return int(to_element(x, elem))
    raise type_error(f"{what}: the value must be an integer scalar, got {x!r}", "convert it with S.i32(...)")


@meaning
def atomic_add(ptr: object, value: object) -> PyVar:
    return _atomic("atomic_add", ptr, lambda old, x: old + x, value)


@meaning
def atomic_min(ptr: object, value: object) -> PyVar:
    return _atomic("atomic_min", ptr, min, value)


@meaning
def atomic_max(ptr: object, value: object) -> PyVar:
    return _atomic("atomic_max", ptr, max, value)


@meaning
def atomic_exchange(ptr: object, value: object) -> PyVar:
    return _atomic("atomic_exchange", ptr, lambda _, x: x, value)


@meaning
def atomic_compare_exchange(ptr: object, expected: object, value: object) -> PyVar:
    return _atomic("atomic_compare_exchange", ptr, lambda old, e, x: x if old == e else old, expected, value)


def _sim_vector(x: object, what: str) -> DataType:
    if type(x) is not PyVar or x.dtype.is_scalar:
        raise type_error(f"{what} must be a vector, got {x!r}")
    return x.dtype


@meaning
def vload_gather(ptr: PyPointer, indices: PyVar, mask: object = None) -> PyVar:
    ptr = pointer_of(ptr, "S.vload_gather: ptr")
    indices_ok(_sim_vector(indices, "S.vload_gather: indices"), "S.vload_gather")
    view, positions, active = gather_positions(ptr, indices, mask, "S.vload_gather")
    result = loaded_dtype(ptr.dtype, indices.dtype.lanes)
    if active is None:
        return PyVar(view[positions], result)
    out = np.zeros(result.lanes, view.dtype)
    out[active] = view[positions[active]]
    return PyVar(out, result)


@meaning
def vstore_scatter(value: PyVar, ptr: PyPointer, indices: PyVar, mask: object = None) -> None:
    ptr = pointer_of(ptr, "S.vstore_scatter: ptr")
    refuse_constant(ptr.scope)
    indices_ok(_sim_vector(indices, "S.vstore_scatter: indices"), "S.vstore_scatter")
    scatter_ok(_sim_vector(value, "S.vstore_scatter: value"), ptr.dtype, indices.dtype)
    view, positions, active = gather_positions(ptr, indices, mask, "S.vstore_scatter")
    if active is None:
        view[positions] = value.value
    else:
        view[positions[active]] = value.value[active]


AT = {"vload": loaded_at, "vstore": stored_at}
"""Loads and stores of one whole register at a pointer that is moved by so many elements."""
