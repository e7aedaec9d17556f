"""Loops over float32 that NumPy would pass memory many times for, in C; where there is no library of them, in NumPy.

Both give the same bits, so that statistics and what is quantised by them do not depend on it: each operation is rounded by
itself, in one order. `python -m compassc.layers.float_loops` builds the library, for set-up.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compass_core.addresses import address
from compass_core.arrays import Array
from compass_core.lazy import LazyModule
from compass_core.namedtuple import NamedTuple
from compass_core.native import Native, install
from compassc.layers.windows import Window

if TYPE_CHECKING:
    from compassc.targets import host_math
    from compassc.targets.own_library import OwnLibrary
else:
    host_math = LazyModule("compassc.targets.host_math")

F32 = np.float32
MOST_BINS = 4096
"""Of a histogram by the library."""
FILTERS_AT_ONCE = 16
"""Filters whose sums the library makes at once, or half of them."""


class _Window(ctypes.Structure):
    """The sizes of an output [samples, rows, columns, channels], and of its image, whose channels are its inputs; where the first
    window begins in it, and from one to the next; its cells, and from one to the next."""

    _fields_ = [
        (name, ctypes.c_long)
        for name in "samples rows columns channels height width inputs top left down right high wide lower further".split()
    ]


class _Wanted(ctypes.Structure):
    """Where the smallest and the largest number of each row of `many` go, and, where `step` is not 0, each `step`th of all."""

    _fields_ = [
        ("least", ctypes.c_void_p),
        ("most", ctypes.c_void_p),
        ("many", ctypes.c_long),
        ("step", ctypes.c_long),
        ("taken", ctypes.c_void_p),
    ]


_POINTER, _COUNT, _NUMBER, _DOUBLE = ctypes.c_void_p, ctypes.c_long, ctypes.c_float, ctypes.c_double
_SEEN = ctypes.POINTER(_Wanted)
_SUMS = (
    _POINTER,
    _POINTER,
    _POINTER,
    _POINTER,
    ctypes.POINTER(_Window),
    _POINTER,
    _NUMBER,
    _NUMBER,
    _SEEN,
)
PAIRS: Mapping[str, np.ufunc] = {f.__name__: f for f in (np.add, np.subtract, np.multiply)}
"""Functions of two numbers, in NumPy."""
_EACH = ("exp", "sigmoid", "silu", "erf", "gelu")
_ARGUMENTS: Mapping[str, tuple[type, ...]] = {
    "extremes": (_POINTER, _COUNT, _SEEN),
    "counts": (_POINTER, _COUNT, _DOUBLE, _DOUBLE, _COUNT, _POINTER),
    "finish": (_POINTER, _COUNT, _COUNT, _POINTER, _NUMBER, _NUMBER),
    "channel_sums": _SUMS,
    "filter_sums": _SUMS,
    **{f"each_{name}": (_POINTER, _POINTER, _COUNT) for name in _EACH},
    **dict.fromkeys((f"pairs_{name}" for name in PAIRS), (*3 * (_POINTER,), _COUNT, _NUMBER, _NUMBER, _SEEN)),
}
_DTYPE, _NOTHING = np.dtype(F32), np.empty(0, F32)
_LINE = 16
"""Numbers of a line of the cache."""


def own_library() -> OwnLibrary:
    """The library, which need not be built."""
    from compassc.targets.own_library import OwnLibrary

    loops = Path(__file__).with_suffix(".c").read_text(encoding="utf-8")
    return OwnLibrary("float_loops", loops + "\n".join(host_math.texts_of("exp", "Lanes", "Whole").values()) + "\n")


_library = Native(lambda: own_library().path(), _ARGUMENTS, "float layers are computed by NumPy alone")


def _takes(*arrays: Array) -> ctypes.CDLL | None:
    """The library, where it takes these arrays: of float32, without gaps."""
    return _library() if all(a.dtype is _DTYPE and a.flags.c_contiguous for a in arrays) else None


def aligned(count: int) -> Array:
    """So many numbers, which are yet to be written, from the begin of a line of the cache on: loops take up to a tenth less time
    where vectors do not lie across two."""
    room = np.empty(count + _LINE - 1, F32)
    first = -(address(room) // 4) % _LINE
    return room[first : first + count]


class Extremes(NamedTuple):
    """The smallest and the largest number of each of some rows, NaN where there is one in it; a zero is positive. And each so many
    of all numbers."""

    least: list[float]
    most: list[float]
    taken: Array


class Wanted:
    """The extremes of rows, of so many numbers together, which the library has yet to see: `done` when it has."""

    __slots__ = ("_room", "_rows", "_taken", "done", "given", "numbers")

    def __init__(self, rows: int, many: int, step: int) -> None:
        """Of rows of `many` numbers, which is at least 1; a copy of each `step`th number, of none where that is 0."""
        self.numbers, self.done = rows * many, False
        self._rows, self._room = rows, (ctypes.c_float * (2 * rows))()
        self._taken = np.empty(-(-self.numbers // step), F32) if step else _NOTHING
        start = ctypes.addressof(self._room)
        self.given = _Wanted(start, start + 4 * rows, many, step, address(self._taken) if step else None)

    @property
    def found(self) -> Extremes:
        """What the library has seen."""
        return Extremes(self._room[: self._rows], self._room[self._rows :], self._taken)


def extremes(rows: Array, step: int = 0) -> Extremes:
    """Of each row [n, many], and of all numbers, one row after the other, a copy of each `step`th; of none where that is 0."""
    if (library := _takes(rows)) is None:
        taken = rows.reshape(-1)[::step].copy() if step else _NOTHING
        return Extremes((rows.min(1) + F32(0)).tolist(), (rows.max(1) + F32(0)).tolist(), taken)
    wanted = Wanted(rows.shape[0], rows.shape[1], step)
    library.extremes(address(rows), rows.size, wanted.given)
    return wanted.found


def counts(values: Array, bound: float, bins: int) -> Array:
    """How many values [n], which lie in -bound to bound, fall into so many equal bins between these; one more of `bound`."""
    factor = bins / (2 * bound)
    if bins <= MOST_BINS and (library := _takes(values)) is not None:
        found = np.empty(bins + 1, np.int64)
        if not library.counts(values.ctypes.data, values.size, bound, factor, bins, found.ctypes.data):
            return found
    at = np.add(values, bound, dtype=np.float64)
    at *= factor
    return np.bincount(at.astype(np.intp), minlength=bins + 1)


def finish(sums: Array, line: Array, least: float = -inf, most: float = inf) -> None:
    """Adds a line [many] to each of the lines of sums [..., many], and limits them; zeros are positive where `least` is.
    ValueError where they do not fit."""
    if sums.shape[-1:] != line.shape:
        raise ValueError(f"a line of {list(line.shape)} for sums of {list(sums.shape)}")
    if (library := _takes(sums, line)) is not None:
        library.finish(sums.ctypes.data, sums.size // max(line.size, 1), line.size, line.ctypes.data, least, most)
        return
    sums += line
    _limit(sums, least, most)


def _limit(values: Array, least: float, most: float) -> None:
    if (least, most) != (-inf, inf):
        np.clip(values, F32(least), F32(most), out=values)
    if not least:
        values += F32(0)


class UnderWindows(NamedTuple):
    """Sums under windows: what is seen around the image, a number for each of its channels; the window; a line that is added,
    and limits, as `finish` has them; all arrays of float32 without gaps."""

    around: Array
    window: Window
    line: Array
    limits: tuple[float, float]


def side_by_side(filters: Array) -> Array:
    """Filters [O, cells * I] as `filter_sums` takes them: those that it computes at once beside each other."""
    outputs, inner = filters.shape
    missing = -outputs % (FILTERS_AT_ONCE // 2)
    wide = np.concatenate([filters, np.zeros((missing, inner), F32)]) if missing else filters
    whole = len(wide) // FILTERS_AT_ONCE * FILTERS_AT_ONCE
    made = aligned(wide.size)
    panels = wide[:whole].reshape(-1, FILTERS_AT_ONCE, inner).transpose(0, 2, 1)
    made[: panels.size].reshape(panels.shape)[...] = panels
    made[panels.size :].reshape(inner, -1)[...] = wide[whole:].T
    return made


class SumLoop:
    """A loop over windows of images of one shape: what the library takes for each of them is found once.

    `channel_sums`: the sums of what each cell of a window sees in a channel times its factor, cell after cell; filters
    [cells, C], the line [C]. `filter_sums`: for each filter the sum of what a window sees times its factor, cell after cell, and of
    each one channel after the other; filters as `side_by_side` lays them, the line of a multiple of `FILTERS_AT_ONCE` numbers.
    """

    def __init__(
        self, library: ctypes.CDLL, name: str, sums: UnderWindows, filters: Array, shape: Sequence[int], outputs: int
    ) -> None:
        """For images of `shape` [h, w, I]."""
        self._write, self._kept = getattr(library, name), (filters, sums)
        self._sizes, self._places = (*shape, outputs), dict[tuple[int, tuple[int, ...], tuple[int, ...]], _Window]()
        self._given = filters.ctypes.data, sums.around.ctypes.data
        self._ended = sums.line.ctypes.data, *sums.limits

    def __call__(self, image: Array, first: int, out: Array, wanted: Wanted | None = None) -> None:
        """Writes the sums of images [n, h, w, I] into out [n, rows, columns, O], which begins with the row `first`; `wanted` are
        their extremes. ValueError where they do not fit."""
        place = self._places.get((first, image.shape, out.shape)) or self._place(first, image.shape, out.shape)
        if not (
            image.dtype == out.dtype == _DTYPE
            and image.flags.c_contiguous
            and out.flags.c_contiguous
            and (wanted is None or wanted.numbers == out.size)
        ):
            raise ValueError(f"sums of {list(out.shape)} of images of {list(image.shape)}")
        seen = wanted and wanted.given
        self._write(address(out), address(image), *self._given, place, *self._ended, seen)
        if wanted:
            wanted.done = True

    def _place(self, first: int, seen: tuple[int, ...], made: tuple[int, ...]) -> _Window:
        if (*seen[1:], made[-1]) != self._sizes or seen[0] != made[0]:
            raise ValueError(f"sums of {list(made)} of images of {list(seen)}")
        window = self._kept[1].window
        (top, _), (left, _) = window.pads
        begin = (first * window.stride[0] - top, -left)
        found = _Window(*made, *self._sizes[:-1], *begin, *window.stride, *window.kernel, *window.dilation)
        self._places[first, seen, made] = found
        return found


def sum_loop(name: str, sums: UnderWindows, filters: Array, shape: Sequence[int], outputs: int) -> SumLoop | None:
    """Of images of `shape` [n, h, w, I]; None where there is no library for them."""
    library = _takes(filters, sums.around, sums.line) if len(shape) == 4 else None
    return None if library is None else SumLoop(library, name, sums, filters, shape[1:], outputs)


def pairs(name: str, limits: tuple[float, float], a: Array, b: Array, out: Array, wanted: Wanted | None = None) -> None:
    """Writes a function of `PAIRS` of each two numbers of arrays of one shape, within limits as `finish` has them; `wanted` are the
    extremes of all results, which may be found on the way. ValueError where they do not fit."""
    if not (a.shape == b.shape == out.shape) or wanted and wanted.numbers != out.size:
        raise ValueError(f"{list(out.shape)} of arrays of {list(a.shape)} and {list(b.shape)}")
    if (library := _takes(a, b, out)) is None:
        PAIRS[name](a, b, out=out)
        _limit(out, *limits)
        return
    seen = wanted and wanted.given
    getattr(library, f"pairs_{name}")(address(out), address(a), address(b), out.size, *limits, seen)
    if wanted:
        wanted.done = True


def each(name: str, values: Array, out: Array) -> None:
    """Writes a function of `FUNCTIONS` of each number."""
    if (library := _takes(values, out)) is not None:
        getattr(library, f"each_{name}")(out.ctypes.data, values.ctypes.data, values.size)
    else:
        out[...] = FUNCTIONS[name](values)


def _exp(x: Array) -> Array:
    """As `host_math` has it: 2 to a whole power times a polynomial of what is left."""
    at = np.clip(x, F32(-105), F32(89.5))
    turns = at * F32(float.fromhex("0x1.715476p+0"))
    turns += F32(3 << 22)
    n = turns - F32(3 << 22)
    at -= n * F32(float.fromhex("0x1.62e400p-1"))
    at -= n * F32(float.fromhex("0x1.7f7d1cp-20"))
    made = np.full_like(at, host_math.EXP[-1])
    for factor in host_math.EXP[-2::-1]:
        made *= at
        made += F32(factor)
    made *= at * at
    made += at
    made += F32(1)
    power = turns.view(np.int32) - np.int32(0x4B400000)
    half = power >> 1
    for part in (half, power - half):
        made *= ((part + np.int32(127)) << 23).view(F32)
    return made


def _sigmoid(x: Array) -> Array:
    made = _exp(np.negative(x))
    made += F32(1)
    np.divide(F32(1), made, out=made)
    return made


def _erf(x: Array) -> Array:
    """The error function to 1e-6, by the approximation 7.1.26 of Abramowitz and Stegun."""
    bell = np.abs(x)
    t = bell * F32(0.3275911)
    t += F32(1)
    np.divide(F32(1), t, out=t)
    series = t * F32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series += F32(factor)
        series *= t
    bell *= bell
    series *= _exp(np.negative(bell, out=bell))
    np.subtract(F32(1), series, out=series)
    np.copysign(series, x, out=series)
    return series


def _gelu(x: Array) -> Array:
    made = _erf(x * F32(0.5**0.5))
    made += F32(1)
    made *= x * F32(0.5)
    return made


FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "exp": _exp,
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "erf": _erf,
    "gelu": _gelu,
}
"""Functions of single numbers, in NumPy."""


def main() -> int:
    """Builds the library beside `compassc.targets.own_library`; the exit code of the error otherwise."""
    return install(lambda: own_library().install())


if __name__ == "__main__":
    raise SystemExit(main())
