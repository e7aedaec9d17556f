"""Comparison of outputs with expected arrays."""

from __future__ import annotations

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_runtime.sizes import elements

SHOWN = 5
"""Mismatches that are listed."""


@dataclass(frozen=True)
class Mismatch:
    """How an output differs: how many of how many elements, the largest distance, the first ones with their index."""

    name: str
    count: int
    total: int
    worst: float
    worst_index: tuple[int, ...]
    first: tuple[tuple[tuple[int, ...], float, float], ...]

    def lines(self) -> list[str]:
        """A summary for a reader."""
        share = 100 * self.count / self.total
        out = [
            f"'{self.name}' differs in {self.count} of {self.total} elements ({share:.3g}%)",
            f"largest difference {self.worst:g} at {_index(self.worst_index)}",
        ]
        return out + [f"at {_index(i)}: got {got:g}, expected {expected:g}" for i, got, expected in self.first]


@dataclass(frozen=True)
class Measure:
    """How near an array is to another one: whether they are the same bits (of two types: the same values), how many
    elements differ and by how much at most, and the cosine of the angle between them (None where it has none)."""

    equal: bool
    different: int
    largest: float
    cosine: float | None


def measure(got: Array, wanted: Array) -> Measure:
    """The measures of two arrays of as many elements. NaN equals NaN; what differs from NaN differs infinitely."""
    import numpy as np

    if got.dtype == wanted.dtype and got.tobytes() == wanted.tobytes():
        return Measure(True, 0, 0.0, _cosine(got, got))
    a, b = got.reshape(-1).astype(np.float64), wanted.reshape(-1).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        distance = np.where(same, 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf))
    different = int((~same).sum())
    equal = not different and got.dtype != wanted.dtype
    return Measure(equal, different, float(distance.max(initial=0.0)), _cosine(a, b))


def _cosine(a: Array, b: Array) -> float | None:
    import numpy as np

    x, y = a.reshape(-1).astype(np.float64), b.reshape(-1).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        lengths = float(np.linalg.norm(x) * np.linalg.norm(y))
        found = float(np.dot(x, y) / lengths) if lengths else float("nan")
    return found if np.isfinite(found) else None


def _index(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]"


def compare(name: str, got: Array, expected: Array, rtol: float, atol: float) -> Mismatch | None:
    """None when every element is within `atol + rtol * |expected|`. NaN equals NaN. CompassError for unequal sizes."""
    import numpy as np

    if got.size != expected.size:
        message = f"'{name}' has {elements(got.shape)}, but the expected array has {elements(expected.shape)}"
        raise CompassError(message, code="expect-size")
    mine, wanted = got.reshape(-1), expected.reshape(-1)
    wide_mine, wide = mine.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(wide_mine - wide)
        if mine.dtype.kind in "iub" and wanted.dtype.kind in "iub":
            equal = mine == wanted
            distance = np.where(equal, 0, np.maximum(distance, 1))  # neighbours beyond 2**53 look equal as floats
        else:
            equal = (wide_mine == wide) | (np.isnan(wide_mine) & np.isnan(wide))
        far = np.flatnonzero(~equal & ~(distance <= atol + rtol * np.abs(wide)))
    if not far.size:
        return None
    worst = far[np.argmax(np.nan_to_num(distance[far], nan=np.inf))]

    def index(flat: np.intp) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(flat, expected.shape)) if expected.shape else ()

    first = tuple((index(i), float(wide_mine[i]), float(wide[i])) for i in far[:SHOWN])
    return Mismatch(name, int(far.size), got.size, float(distance[worst]), index(worst), first)
