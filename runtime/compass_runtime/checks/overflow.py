"""Whole numbers of a graph that do not fit their 32 bits: layers limit results to their type, so such a one reaches an end
of it where none of what the layer reads does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple
from compass_runtime.quantisation import NOT_QUANTISED, Quantisation
from compass_runtime.tensors import TensorObserver

if TYPE_CHECKING:
    from compass_core.aipubin.graphnote import NotedLaunch
    from compass_runtime.job import Job

WHOLE = ("int32", "uint32")
ENDS_AT_ZERO = "uint32"
"""The type whose lower end is no sign of anything."""


class Extreme(NamedTuple):
    """An end of its type that a tensor reaches: the number, how often, and where first."""

    number: int
    times: int
    where: tuple[int, ...]


def overflows(job: Job, inputs: Mapping[str, Array], timeout: float | None = None) -> list[CompassError]:
    """Runs a job of a graph; an error for each launch that gives 32-bit whole numbers at an end of their type which it does
    not read there. Tensors between layers of one kernel are not seen."""
    note = job.program.note
    if note is None:
        return []
    reached: dict[str, list[Extreme]] = {}
    types: dict[str, str] = {}

    def take(name: str, array: Array, quantisation: Quantisation) -> None:
        types[name] = array.dtype.name
        if quantisation == NOT_QUANTISED:
            reached[name] = extremes(array)

    for name, array in inputs.items():
        reached[name] = extremes(array)
    watch = TensorObserver(job, [take])
    watch.finish(job.run(inputs, timeout, after=watch.after, singly=True))
    return [
        _error(launch, name, types[name], extreme)
        for launch in note.launches
        for name in launch.outputs
        for extreme in reached.get(name, ())
        if not any(extreme.number == e.number for n in launch.inputs for e in reached.get(n, ()))
    ]


def extremes(array: Array) -> list[Extreme]:
    """The ends of its type that an array of 32-bit whole numbers reaches."""
    import numpy as np

    if array.dtype.name not in WHOLE:
        return []
    limits = np.iinfo(array.dtype)
    found = []
    for number in (limits.max,) if array.dtype.name == ENDS_AT_ZERO else (limits.min, limits.max):
        places = np.argwhere(array == number)
        if len(places):
            found.append(Extreme(int(number), len(places), tuple(map(int, places[0]))))
    return found


def _error(launch: NotedLaunch, tensor: str, dtype: str, extreme: Extreme) -> CompassError:
    where = f"[{', '.join(map(str, extreme.where))}]" if extreme.where else ""
    more = f" and {extreme.times - 1} more" if extreme.times > 1 else ""
    return CompassError(
        f"overflow: '{launch.label}' gives {extreme.number} in '{tensor}{where}'{more}, an end of {dtype}, to which results "
        "beyond it are limited",
        code="check-overflow",
        help="keep the numbers smaller, or compute with real ones",
    )
