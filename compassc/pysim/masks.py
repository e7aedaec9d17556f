"""Mask arguments as NumPy bool arrays."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from compass_core.arrays import Array
from compassc.ir.dtypes import bool_of
from compassc.ops.masks import expand_mask_string, mask_error, mask_lanes

from .values import PyVar

_ARANGE = np.arange(4096)


def mask_array(mask: object, lanes: int) -> Array | None:
    """The active lanes of a mask argument; None when it is None (all lanes)."""
    if mask is None:
        return None
    if type(mask) is PyVar:
        if mask.dtype.lanes != lanes or not mask.dtype.is_bool:
            raise mask_error(f"the mask is {mask.dtype}, its vector has {lanes} lanes")
        return mask.value
    if isinstance(mask, str):
        return _padded(tuple(_expand(mask)), lanes)
    found = mask_lanes(mask)
    if found is None:
        raise mask_error(f"{type(mask).__name__} is not a mask")
    return _padded(tuple(found), lanes)


@lru_cache(maxsize=1024)
def _expand(text: str) -> tuple[bool, ...]:
    return tuple(expand_mask_string(text))


@lru_cache(maxsize=1024)
def _padded(items: tuple[bool, ...], lanes: int) -> Array:
    if len(items) > lanes:
        raise mask_error(f"the mask has {len(items)} lanes, its vector {lanes}")
    out = np.zeros(lanes, bool)
    out[: len(items)] = items
    out.flags.writeable = False
    return out


def mask_var(bits: Array) -> PyVar:
    """A bool array as a mask value."""
    return PyVar(bits, bool_of(len(bits)))


def first_lanes(n: int, lanes: int) -> Array:
    """The mask array whose first `n` lanes are true."""
    return (_ARANGE if lanes <= 4096 else np.arange(lanes))[:lanes] < n
