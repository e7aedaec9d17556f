"""Values for the agreement tests, and what counts as agreement."""

from __future__ import annotations

from typing import Any

import numpy as np
from op_forms import Form, Place

from compassc.ir.dtypes import DataType
from compassc.ops.numeric import np_dtype

Array = np.ndarray[Any, Any]
FLOAT_EDGES = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    100.0,
    65504.0,
    70000.0,
    88.5,
    -87.4,
    2.0**31,
    -(2.0**31),
    1e-3,
    6e-8,
    1e-40,
    3.4028234663852886e38,
    np.inf,
    -np.inf,
    np.nan,
)


def edges(t: DataType) -> Array:
    """Values where an operation's behaviour may change."""
    kind = np_dtype(t)
    if t.is_floating:
        with np.errstate(over="ignore"):
            return np.array(FLOAT_EDGES, np.float32).astype(kind)
    low, high = (int(v) for v in t.range())
    near = [low, low + 1, high, high - 1, low // 2, high // 2, high // 2 + 1, 0, 1, 2, 3, 7, 8]
    near += [t.bits - 1, t.bits, t.bits + 1, -1 if low else high, -2 if low else high - 2, -t.bits if low else 63]
    return np.array(near).astype(kind)


@np.errstate(over="ignore")
def mixture(t: DataType, rows: int, rng: np.random.Generator) -> Array:
    """Random values of a type in `rows` rows: any bits, small ones and edges."""
    shape, kind = (rows, t.lanes), np_dtype(t)
    if t.is_bool:
        out = rng.integers(0, 2, shape).astype(bool)
        out[::4] = True
        out[1] = False
        return out
    raw = np.frombuffer(rng.bytes(rows * t.lanes * t.bytes), kind).reshape(shape)
    if t.is_floating:
        small = (rng.standard_normal(shape, np.float32) * 8).astype(kind)
    else:
        small = rng.integers(-5 if t.is_int else 0, t.bits + 3, shape).astype(kind)
    pick = rng.integers(0, 8, shape, np.uint8)
    return np.where(pick < 2, rng.choice(edges(t), shape), np.where(pick < 4, small, raw))


def values(place: Place, rows: int, rng: np.random.Generator) -> Array:
    """Random values of a place."""
    out = mixture(place.dtype, rows, rng)
    if place.name.startswith("safe"):
        out[(out == 0) | (out == np.array(-1).astype(out.dtype))] = 3
    if place.name.startswith("some"):
        out[np.arange(rows), rng.integers(0, place.dtype.lanes, rows)] = True
    return out


def defined(form: Form, mask: Array | None, rows: int) -> Array:
    """Which result lanes have a defined value, per row; `mask` (rows, lanes) None: all active."""
    t, name = form.result, form.name
    lanes = np.ones((rows, t.lanes), bool)
    if not name:
        lanes[:, form.live or t.lanes :] = False
        return lanes
    if name in ("vrpadd", "vrpmax", "vrpmin"):
        lanes[:, 2 if dict(form.options).get("return_idx") else 1 :] = False
        return lanes
    if name == "vqdot" and t.is_floating:
        lanes[:, 1::2] = False
        return lanes if mask is None else lanes & np.repeat(mask.reshape(rows, -1, 4).any(axis=2), 2, axis=1)
    if form.op.r == "auto" and mask is not None and not t.is_bool:
        return mask.reshape(rows, t.lanes, -1).any(axis=2)
    return lanes


def alike(a: Array, b: Array) -> Array:
    """Lane by lane: the same bits, or both NaN."""
    if a.dtype.kind in "biu":
        return a == b
    raw = f"u{a.dtype.itemsize}"
    same = a.view(raw) == b.view(raw)
    return same if same.all() else same | (np.isnan(a.astype(np.float32)) & np.isnan(b.astype(np.float32)))


def mask_array(form: Form, inputs: dict[str, Array], rows: int) -> Array | None:
    """The active lanes of a form's mask, per row."""
    if form.mask is None:
        return None
    if isinstance(form.mask, Place):
        return inputs[form.mask.name].astype(bool)
    return np.repeat(constant_mask(form.mask, form.mask_lanes)[None], rows, axis=0)


def constant_mask(text: str, lanes: int) -> Array:
    """The lanes of a constant or tail mask given as kernel text."""
    from chain import N_VALUE

    from compassc.ops.masks import mask_lanes

    if text.startswith("S.tail_mask("):
        count = text.partition("(")[2].partition(",")[0]
        return np.arange(lanes) < (N_VALUE if count == "n" else int(count))
    plain = text[len("S.const_mask(") : -1] if text.startswith("S.const_mask(") else text
    found = mask_lanes(eval(plain))
    assert found is not None
    return np.array([*found, *[False] * (lanes - len(found))])


def difference(form: Form, inputs: dict[str, Array], got: Array, want: Array, what: str) -> str:
    """A sentence about the first lane that differs; empty when none does."""
    rows = len(got)
    mask = mask_array(form, inputs, rows)
    bad = ~alike(got, want)
    if not bad.any():
        return ""
    bad &= defined(form, mask, rows)
    if not bad.any():
        return ""
    row, lane = (int(v) for v in np.argwhere(bad)[0])
    values = {p.name: inputs[p.name][row].tolist() for p in form.places}
    return f"{form.text}: lane {lane} is {got[row, lane]!r}, {what} {want[row, lane]!r} ({bad.sum()} lanes); {values}"
