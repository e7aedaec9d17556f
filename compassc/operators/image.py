"""Pictures in other sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.errors import ExpressionError
from compassc.operators.declare import numbers, operator, pair, sample
from compassc.operators.patterns import PatternKind
from compassc.te.tensor import Tensor

if TYPE_CHECKING:
    from compassc.ir.exprs import Expr

__all__ = ["resize2d"]

_MODES = ("half_pixel", "align_corners", "asymmetric")


def _source(place: np.float32, old: int, new: int, mode: str, real: type[np.float32]) -> np.float32:
    """The place in the old picture, a real number."""
    if mode == "align_corners":
        return real(place) * ((old - 1) / (new - 1) if new > 1 else 0.0)
    return real(place) * (old / new) if mode == "asymmetric" else (real(place) + 0.5) * (old / new) - 0.5


def _resized(x: Array, size: object, method: str = "linear", mode: str = "half_pixel") -> Array:
    found = x.astype("f8")
    for axis, new in zip((2, 3), pair(size)):
        old = x.shape[axis]
        at = np.array([_source(np.float32(i), old, new, mode, np.float32) for i in range(new)], "f4")
        if method == "nearest":
            places = (
                np.floor(at + 0.5)
                if mode == "align_corners"
                else np.ceil(at - 0.5)
                if mode == "half_pixel"
                else np.floor(at)
            )
            found = np.take(found, np.clip(places, 0, old - 1).astype(int), axis)
            continue
        low = np.floor(at)
        part = (at - low).reshape([-1 if d == axis else 1 for d in range(4)])
        a, b = (np.take(found, np.clip(low + n, 0, old - 1).astype(int), axis) for n in (0, 1))
        found = a * (1 - part) + b * part
    return np.rint(found) if x.dtype.kind in "iu" else found


@operator(PatternKind.INJECTIVE, 
    _resized, sample((1, 2, 4, 5), [7, 9]), sample((1, 2, 4, 5), [8, 3], "linear", "align_corners"),
    sample((1, 2, 4, 5), [8, 10], "nearest", "asymmetric"), sample((1, 2, 6, 6), [3, 4], "linear", "asymmetric"),
)  # fmt: skip
def resize2d(
    data: Tensor, size: object, method: str = "linear", coordinate_transformation_mode: str = "half_pixel"
) -> Tensor:
    """A picture (NCHW) in another size: the nearest element (`nearest`), or between the four around (`linear`), of
    whole numbers the nearest whole one."""
    mode = coordinate_transformation_mode
    if method not in ("nearest", "linear") or mode not in _MODES:
        raise ExpressionError(
            f"topi.image.resize2d has no '{method}' by '{mode}': nearest or linear by {', '.join(_MODES)}"
        )
    (n, c, h, w), (oh, ow) = numbers(data, "resize2d"), pair(size)

    def source(i: Expr, old: int, new: int) -> Expr:
        scale = (
            (old - 1) / (new - 1)
            if mode == "align_corners" and new > 1
            else 0.0
            if mode == "align_corners"
            else old / new
        )
        place = te.cast(i, "float32")
        if mode == "half_pixel":
            return (place + te.const(0.5)) * te.const(scale) - te.const(0.5)
        return place * te.const(scale)

    def inside(at: Expr, old: int) -> Expr:
        found: Expr = te.min(te.max(te.cast(at, "int32"), 0), old - 1)
        return found

    def nearest(b: Expr, k: Expr, y: Expr, x: Expr) -> Expr:
        places = []
        for i, old, new in ((y, h, oh), (x, w, ow)):
            at = source(i, old, new)
            near = te.floor(at + te.const(0.5)) if mode == "align_corners" else te.floor(at)
            places.append(inside(te.ceil(at - te.const(0.5)) if mode == "half_pixel" else near, old))
        found: Expr = data[(b, k, *places)]
        return found

    def linear(b: Expr, k: Expr, y: Expr, x: Expr) -> Expr:
        ends = []
        for i, old, new in ((y, h, oh), (x, w, ow)):
            at = source(i, old, new)
            low = te.floor(at)
            ends.append((inside(low, old), inside(low + te.const(1.0), old), at - low))
        (y0, y1, fy), (x0, x1, fx) = ends

        def row(p: Expr) -> Expr:
            a, z = (te.cast(data[b, k, p, q], "float32") for q in (x0, x1))
            return a * (te.const(1.0) - fx) + z * fx

        between = row(y0) * (te.const(1.0) - fy) + row(y1) * fy
        return te.cast(te.nearbyint(between) if data.dtype.is_integer else between, data.dtype)

    made: Tensor = te.compute(
        [n, c, oh, ow], nearest if method == "nearest" else linear, name="T_resize2d", tag="injective"
    )
    return made
