"""Python sides of the script calls that are not operations."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from compass_core.errors import CompassError

from ..language import api  # noqa: F401  (registers the IR sides)
from ..language.dispatch import LOCAL, register_ir_api
from ..language.specs import check_alloc, check_stages, const_table, shape_items
from .checks import wanted
from .memory import PyBuffer, PyPointer, Storage, index_of, pointer_of
from .vector_iterations import watched_turns

if TYPE_CHECKING:
    from .session import Session


@register_ir_api
def _py_grid(*extents: object) -> Iterable[object]:
    ranges = [range(index_of(n, "an extent of S.grid")) for n in extents]
    return ranges[0] if len(ranges) == 1 else itertools.product(*ranges)


@register_ir_api
def _py_vectorized(start: object, stop: object = None) -> Iterable[int]:
    turns = range(index_of(start)) if stop is None else range(index_of(start), index_of(stop))
    return watched_turns(turns, LOCAL.tec) if wanted("race") else turns


@register_ir_api
def _py_unroll(start: object, stop: object = None, step: object = 1) -> Iterable[int]:
    low, high = (0, start) if stop is None else (start, stop)
    return range(index_of(low), index_of(high), index_of(step))


@register_ir_api
def _py_tec_range(start: object, stop: object = None) -> Iterable[int]:
    low, high = (0, start) if stop is None else (start, stop)
    own = LOCAL.tec.id
    return (own,) if index_of(low) <= own < index_of(high) else ()


@register_ir_api
def _py_pipelined(start: object, stop: object = None, step: object = None, *, stages: int = 2) -> Iterable[int]:
    """The turns one after another; what a turn left in arrays of tiles is nothing for the next one to find."""
    check_stages(stages)
    bounds = [index_of(x, "a bound of S.pipelined") for x in (start, stop, step) if x is not None]
    if len(bounds) == 3 and bounds[2] <= 0:
        raise CompassError(f"the loop step must be positive, got {bounds[2]}", code="loop-step", help="count upwards")
    tec = LOCAL.tec
    outer, tec.tiles = tec.tiles, []
    try:
        for turn in range(*bounds):
            yield turn
            tec.forget_tiles()
    finally:
        tec.tiles = outer


@register_ir_api
def _py_meta_var(value: object) -> object:
    return value


def _storage(what: str, size: int, scope: str) -> Storage:
    """Storage for an allocation; the TECs share one for the scope `shared`."""
    name = f"{what}(..., {scope!r})"
    session: Session = LOCAL.tec.session
    if scope == "shared":
        return session.shared_storage(LOCAL.tec, size, name)
    return session.watched(Storage.fresh(size, name), True, False)


def _size(items: tuple[int, ...], item_bytes: int) -> int:
    for item in items:
        item_bytes *= item
    return item_bytes


@register_ir_api
def _py_alloc(shape: object, dtype: object, scope: str = "private") -> PyPointer:
    items, found = check_alloc("S.alloc", shape, dtype, scope)
    return PyPointer(_storage("S.alloc", _size(items, found.total_bytes), scope), 0, found, scope)


@register_ir_api
def _py_alloc_buffer(shape: object, dtype: object, scope: str = "private") -> PyBuffer:
    items, found = check_alloc("S.alloc_buffer", shape, dtype, scope)
    return PyBuffer(_storage("S.alloc_buffer", _size(items, found.total_bytes), scope), 0, found, scope, items)


@register_ir_api
def _py_alloc_const(shape: object, dtype: object, data: object) -> PyBuffer:
    table = const_table(shape, dtype, data)
    raw = table.data.reshape(-1).view("u1").copy()
    return PyBuffer(Storage(raw, "S.alloc_const(...)"), 0, table.dtype, "constant", table.shape)


@register_ir_api
def _py_match_buffer(pointer: object, shape: object) -> PyBuffer:
    p = pointer_of(pointer, "S.match_buffer: pointer")
    if p.dtype.is_void:
        raise CompassError(
            "S.match_buffer: a void pointer cannot be matched", code="type", help="retype it with as_ptr"
        )
    items = tuple(index_of(item, "a shape item") for item in shape_items(shape))
    return PyBuffer(p.storage, p.offset, p.dtype, p.scope, items)


@register_ir_api
def _py_block(name: str = "", no_realize: bool = False) -> contextlib.nullcontext[None]:
    return contextlib.nullcontext()
