"""Pictures in other sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc import te
from compassc.ir.errors import ExpressionError
from compassc.operators.declare import numbers, operator, pair, sample
from compassc.operators.patterns import PatternKind
from compassc.te.tensor import Tensor

if TYPE_CHECKING:
    from compassc.ir.exprs import Expr

__all__ = ["resize2d"]

_MODES = ("half_pixel", "align_corners", "asymmetric")
_ROWS, _WORTH, _PIECE = 2048, 4096, 4096
"""Elements of rows of one picture at most, and results at least, for which rows are computed before what lies between them, if
these are no more than results for each so many bytes of them."""


def _source(place: np.float32, old: int, new: int, mode: str, real: type[np.float32]) -> np.float32:
    """The place in the old picture, a real number."""
    if mode == "align_corners":
        return real(place) * ((old - 1) / (new - 1) if new > 1 else 0.0)
    return real(place) * (old / new) if mode == "asymmetric" else (real(place) + 0.5) * (old / new) - 0.5


def _resized(x: Array, size: object, method: str = "linear", mode: str = "half_pixel") -> Array:
    """In float32 and in the order of the expression, rows first, so that whole numbers are those of kernels at ties, too; a host
    that fuses products with sums may give the other one there."""
    found = x.astype("f4")
    for axis, new in ((3, pair(size)[1]), (2, pair(size)[0])):
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
        found = a * (np.float32(1) - part) + b * part
    return np.rint(found) if x.dtype.kind in "iu" else found


@dataclass(frozen=True)
class _Axis:
    """Where the elements of a new axis lie on the old one."""

    old: int
    new: int
    mode: str

    def source(self, i: Expr) -> Expr:
        place = te.cast(i, "float32")
        if self.mode == "align_corners":
            return place * te.const((self.old - 1) / (self.new - 1) if self.new > 1 else 0.0)
        scale = te.const(self.old / self.new)
        return place * scale if self.mode == "asymmetric" else (place + te.const(0.5)) * scale - te.const(0.5)

    def inside(self, at: Expr) -> Expr:
        found: Expr = te.min(te.max(te.cast(at, "int32"), 0), self.old - 1)
        return found

    def nearest(self, i: Expr) -> Expr:
        at = self.source(i)
        if self.mode == "half_pixel":
            return self.inside(te.ceil(at - te.const(0.5)))
        return self.inside(te.floor(at + te.const(0.5) if self.mode == "align_corners" else at))

    def around(self, i: Expr) -> tuple[Expr, Expr, Expr]:
        """The nearest elements before and behind, and how far it is from the first one to the place."""
        at = self.source(i)
        low = te.floor(at)
        return self.inside(low), self.inside(low + te.const(1.0)), at - low


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
    y_axis, x_axis = _Axis(h, oh, mode), _Axis(w, ow, mode)

    def nearest(b: Expr, k: Expr, y: Expr, x: Expr) -> Expr:
        found: Expr = data[b, k, y_axis.nearest(y), x_axis.nearest(x)]
        return found

    element = nearest if method == "nearest" else _linear(data, y_axis, x_axis)
    made: Tensor = te.compute([n, c, oh, ow], element, name="T_resize2d", tag="injective")
    return made


def _linear(data: Tensor, y_axis: _Axis, x_axis: _Axis) -> Callable[[Expr, Expr, Expr, Expr], Expr]:
    """An element between the four around: of rows, and of tables of places, where they are computed once for several."""
    n, c, h, w = numbers(data, "resize2d")
    oh, ow = y_axis.new, x_axis.new

    def in_row(b: Expr, k: Expr, y: Expr, x: Expr) -> Expr:
        low, high, part = x_axis.around(x)
        return _between(data[b, k, y, low], data[b, k, y, high], part)

    def table(which: int, name: str) -> Tensor:
        made: Tensor = te.compute([oh], lambda y: y_axis.around(y)[which], name=f"T_resize2d_{name}", tag="injective")
        return made

    def element(found: Expr) -> Expr:
        return te.cast(te.nearbyint(found) if data.dtype.is_integer else found, data.dtype)

    def direct(b: Expr, k: Expr, y: Expr, x: Expr) -> Expr:
        low, high, part = y_axis.around(y)
        return element(_between(in_row(b, k, low, x), in_row(b, k, high, x), part))

    pieces = max(-(-oh * ow * data.dtype.bytes // _PIECE), 1)
    if h * pieces > oh or h * max(w, ow) > _ROWS or n * c * oh * ow < _WORTH:
        return direct
    rows: Tensor = te.compute([n, c, h, ow], in_row, name="T_resize2d_rows", tag="injective")
    lows, highs, parts = (table(which, name) for which, name in enumerate(("low", "high", "part")))
    return lambda b, k, y, x: element(_between(rows[b, k, lows[y], x], rows[b, k, highs[y], x], parts[y]))


def _between(a: Expr, z: Expr, part: Expr) -> Expr:
    return te.cast(a, "float32") * (te.const(1.0) - part) + te.cast(z, "float32") * part
