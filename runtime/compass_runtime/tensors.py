"""Every tensor that a graph's launches make: as arrays, in files, and compared with known ones.

The launches run one by one, and each tensor is read when the launch that completes it is done: later its memory may be
another tensor's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from compass_core import files
from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.reading import arrays
from compass_runtime.compare import Measure, compare, measure
from compass_runtime.job import Job
from compass_runtime.program import numpy_dtype
from compass_runtime.quantisation import NOT_QUANTISED, Quantisation

if TYPE_CHECKING:
    from compass_core.aipubin.graphnote import GraphNote, NotedTensor
    from compass_runtime.program import Program


Taker = Callable[[str, "Array", Quantisation], object]
"""Called with a tensor's name, its content, and its quantisation."""


def file_name(tensor: str) -> str:
    """The name of a tensor's file in a folder: letters, digits and `_.-~` as they are, others as in a URL."""
    return quote(tensor, safe="") + ".npy"


def all_tensors(
    job: Job, inputs: Mapping[str, Array], timeout: float | None = None, real: bool = False
) -> dict[str, Array]:
    """Runs once and gives every tensor that a launch makes, by name, the graph's outputs among them.

    `real`: as real numbers in float32. Tensors between layers of one kernel exist nowhere: build with `--no-fuse` to see
    them. CompassError as `Job.run` raises it.
    """
    found: dict[str, Array] = {}

    def take(name: str, array: Array, quantisation: Quantisation) -> None:
        found[name] = quantisation.real(array) if real else array

    watch = TensorObserver(job, [take])
    outputs = job.run(inputs, timeout, after=watch.after, singly=True)
    watch.finish(outputs)
    return found


def inner_tensors(program: Program) -> list[str]:
    """The names of tensors that no launch writes to memory."""
    return [name for launch in program.note.launches for name in launch.inner] if program.note else []


class TensorObserver:
    """Gives the tensors of a run to some takers, each as soon as it is complete."""

    def __init__(self, job: Job, takers: list[Taker]) -> None:
        self._job = job
        self._takers = takers
        note: GraphNote | None = job.program.note
        self._waiting: list[NotedTensor] = list(note.tensors) if note else []

    def after(self, done: int) -> None:
        """Takes what the first `done` launches have completed. The device must be at rest."""
        ready = [t for t in self._waiting if t.made < done]
        self._waiting = [t for t in self._waiting if t.made >= done]
        for tensor in ready:
            if tensor.section is not None:
                quantisation = Quantisation(tensor.scale, tensor.zero_point, tensor.axis)
                self._give(tensor.name, self._job.content_of(tensor), quantisation)

    def finish(self, outputs: Mapping[str, Array]) -> None:
        """Takes the graph's outputs."""
        for slot in self._job.outputs:
            self._give(slot.info.name, outputs[slot.info.name], slot.info.quantisation)

    def _give(self, name: str, array: Array, quantisation: Quantisation) -> None:
        for take in self._takers:
            take(name, array, quantisation)


class Dump:
    """Writes tensors to a folder, one .npy file each; `real`: as real numbers."""

    def __init__(self, folder: Path, real: bool) -> None:
        self._folder = folder
        self._real = real
        self.count = 0

    def __call__(self, name: str, array: Array, quantisation: Quantisation) -> None:
        shown = quantisation.real(array) if self._real else array

        def write(path: Path) -> None:
            with path.open("r+b") as file:
                arrays.write(file, shown)

        files.write(self._folder / file_name(name), write)
        self.count += 1


@dataclass(frozen=True)
class ComparedTensor:
    """The result of comparing a tensor. `measure` is None where the sizes differ, which `problem` then says."""

    name: str
    dtype: str
    elements: int
    within: bool
    measure: Measure | None = None
    problem: str = ""


class Comparison:
    """Compares tensors with those of a folder (`NAME.npy`) or of an archive.

    A known array of floats is compared with the real numbers that a quantised tensor stands for, others with the
    integers. `rtol`, `atol`: what may differ, as `compare` has them.
    """

    def __init__(self, known: Path, rtol: float, atol: float) -> None:
        self._known = dict(_known(known))
        self._where = known
        self._rtol, self._atol = rtol, atol
        self.rows: list[ComparedTensor] = []

    def __call__(self, name: str, array: Array, quantisation: Quantisation) -> None:
        load = self._known.pop(name, None)
        if load is None:
            return
        wanted = _floats(load())
        real = wanted.dtype.kind == "f" and array.dtype.kind in "iu" and quantisation != NOT_QUANTISED
        got = quantisation.real(array) if real else array
        if got.size != wanted.size:
            self.rows.append(
                ComparedTensor(name, got.dtype.name, got.size, False, problem=f"{wanted.size} elements expected")
            )
            return
        within = compare(name, got, wanted, self._rtol, self._atol) is None
        self.rows.append(
            ComparedTensor(name, got.dtype.name, got.size, within, measure(got, wanted.reshape(got.shape)))
        )

    @property
    def unused(self) -> list[str]:
        """Names of known arrays that no tensor has met."""
        return list(self._known)

    def check(self) -> None:
        """CompassError when nothing could be compared."""
        if not self.rows:
            raise CompassError(
                f"--compare: '{self._where}' has no array with the name of a tensor",
                code="compare-empty",
                help=f"its arrays are: {', '.join(self.unused[:8]) or 'none'}",
            )


def _known(place: Path) -> Iterator[tuple[str, Callable[[], Array]]]:
    """Names of tensors and what reads their arrays."""
    if place.is_dir():
        for path in sorted(place.glob("*.npy")):
            yield unquote(path.stem), partial(arrays.load, path)
    elif arrays.kind(place) == "npz":
        for name in arrays.names_in(place):
            yield name, partial(arrays.load, place, name)
    else:
        raise CompassError(
            f"--compare: '{place}' is neither a folder nor an .npz file",
            code="compare-empty",
            help="a folder of NAME.npy files, as --dump-layers writes them, or an archive of arrays by name",
        )


def _floats(array: Array) -> Array:
    """`.npy` has no name for bfloat16: two bytes of unknown type."""
    if array.dtype.kind == "V" and array.dtype.itemsize == 2:
        return array.view(numpy_dtype("bfloat16"))
    return array
