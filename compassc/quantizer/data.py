"""Calibration data: arrays in files, folders of images, data sets of Python programs, as inputs of a graph.

A sample is what the graph takes once: an array for each input, in the shape of the graph. Files hold several of them,
one behind the other along the first axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from compass_core import files
from compass_core.arrays import Array, has_real_numbers
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.errors.suggest import help_for
from compass_core.reading import arrays
from compassc.graph import Graph, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.states import shown_inputs
from compassc.quantizer.pictures import CODE, SUFFIXES, need_pillow, pictures_in, pixels
from compassc.quantizer.programs import program_of

LABELS = ("labels", "label", "targets", "target", "y")
"""Arrays of an archive with the right answers, which calibration needs not."""


@dataclass(frozen=True)
class Pictures:
    """How pictures become arrays: of this height and width (those of the graph's input where it is None), less `mean`,
    over `std`, per channel, in the units of pixels from 0 to 255."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    size: tuple[int, int] | None = None


@dataclass
class Samples:
    """Inputs by the names of the graph's tensors, sample by sample; as often as wanted."""

    count: int
    get: Callable[[int], Mapping[str, Array]] = field(repr=False)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Mapping[str, Array]:
        if not 0 <= index < self.count:
            raise IndexError(index)
        return self.get(index)

    def __iter__(self) -> Iterator[Mapping[str, Array]]:
        return (self.get(i) for i in range(self.count))

    def first(self, many: int) -> Samples:
        """The first samples alone."""
        return Samples(min(many, self.count), self.get)


def load(source: object, graph: Graph, pictures: Pictures | None = None, limit: int | None = None) -> Samples:
    """The samples of a source: an .npy or .npz file, a folder of images, FILE.py:NAME of a data set class or function,
    an array, a mapping of arrays, or a sequence of samples. At most `limit` of them.

    A graph's states may be left out, all of them (`following.followed` finds them). CompassError where names, shapes or types
    are not those of the graph's inputs.
    """
    made = _load(source, without_states(graph, source), pictures or Pictures())
    if not len(made):
        raise CompassError("there are no calibration samples", code=CODE, help="give at least one, better a hundred")
    return made if limit is None else made.first(limit)


def without_states(graph: Graph, source: object) -> Graph:
    """The graph with the inputs that a source has arrays for, which may have none for states."""
    shown = shown_inputs(graph)
    if len(shown) == len(graph.inputs):
        return graph
    states = {name for t in graph.inputs if t not in shown for name in (t.name, graph.producer()[t.name].name)}
    if isinstance(source, (str, Path)) and Path(source).is_file() and arrays.kind(Path(source)) == "npz":
        given = not states.isdisjoint(arrays.names_in(Path(source)))
    elif isinstance(source, Mapping):
        given = not states.isdisjoint(map(str, source))
    else:
        first = source[0] if hasattr(source, "__getitem__") and hasattr(source, "__len__") and len(source) else None
        given = not states.isdisjoint(map(str, first)) if isinstance(first, Mapping) else _lists(first, graph)
    return graph if given else replace(graph, inputs=shown, attributes={})


def _lists(sample: object, graph: Graph) -> bool:
    """Whether a sample has one array for every input."""
    return isinstance(sample, (tuple, list)) and len(sample) == len(graph.inputs) > 2


def _load(source: object, graph: Graph, pictures: Pictures) -> Samples:
    if isinstance(source, Samples):
        return source
    if isinstance(source, (str, Path)):
        return _from_path(str(source), graph, pictures)
    if isinstance(source, Mapping):
        return from_arrays({str(k): np.asarray(v) for k, v in source.items()}, graph, "the calibration data")
    if isinstance(source, np.ndarray):
        return from_arrays({"": source}, graph, "the calibration data")
    if hasattr(source, "__getitem__") and hasattr(source, "__len__"):
        return from_dataset(source, graph)
    if isinstance(source, Iterable):
        return from_dataset(list(source), graph)
    raise CompassError(
        f"calibration data cannot be {type(source).__name__}", code=CODE, help="an array, a mapping, a path"
    )


def program_in(text: str) -> tuple[Path, str] | None:
    """The file and the name in it, where the data are those of a Python program, `FILE.py:NAME`."""
    program, _, name = text.rpartition(":")
    return (Path(program), name) if program.endswith(".py") and not Path(text).exists() else None


def _from_path(text: str, graph: Graph, pictures: Pictures) -> Samples:
    path = Path(text)
    if (program := program_in(text)) is not None:
        return from_program(*program, graph)
    if path.is_dir():
        return from_images(path, graph, pictures)
    if not path.is_file():
        raise CompassError(f"'{text}' does not exist", code="unreadable")
    if path.suffix == ".py":
        raise CompassError(f"'{text}' is a program", code=CODE, help=f"name the data set in it: {text}:MyData")
    content = files.read(path)
    if not content.startswith((arrays.MAGIC, arrays.ZIP_MAGIC)):
        help = "an .npy or .npz file, a folder of images, or FILE.py:DATASET"
        raise CompassError(f"'{text}' is no file of arrays", code=CODE, help=help)
    return from_arrays(arrays.all_in(content, text), graph, f"'{text}'")


# -- arrays


def from_arrays(given: Mapping[str, Array], graph: Graph, label: str) -> Samples:
    """Samples along the first axis, by the names of the inputs or of their layers; the only one may have none."""
    named = _named(given, graph, label)
    counts = {}
    for t in graph.inputs:
        array = named[t.name]
        _check_kind(array, t, label)
        counts[t.name] = _count(array, t, label)
    if len(set(counts.values())) > 1:
        raise CompassError(f"{label} has {counts} samples of its inputs", code=CODE, help="give as many of each")
    count = next(iter(counts.values()), 0)
    shaped = {t.name: named[t.name].reshape(count, *t.shape) for t in graph.inputs}
    types = {t.name: numpy_dtype(t.dtype) for t in graph.inputs}
    return Samples(count, lambda i: {name: array[i].astype(types[name], copy=False) for name, array in shaped.items()})


def _named(given: Mapping[str, Array], graph: Graph, label: str) -> Mapping[str, Array]:
    """Arrays by the names of the graph's inputs; they are called so, like their layers, or without the _0 behind it.
    Arrays without names, which NumPy calls arr_0, arr_1, are taken in order."""
    wanted = [t.name for t in graph.inputs]
    if list(given) in ([""], [f"arr_{i}" for i in range(len(wanted))]) and len(given) == len(wanted):
        return dict(zip(wanted, given.values(), strict=True))
    layers = {layer.name: layer.output.name for layer in graph.layers if layer.type == "Input"}
    known = {name.removesuffix("_0"): name for name in wanted} | layers | {name: name for name in wanted}
    renamed = {known.get(name, name): array for name, array in given.items()}
    found = {name: array for name, array in renamed.items() if name in wanted or name not in LABELS}
    for name in found:
        if name not in wanted:
            raise CompassError(
                f"{label} has an array '{name}', which no input of the graph is called",
                code="no-input",
                help=help_for(name, wanted, "inputs"),
            )
    if missing := [name for name in wanted if name not in found]:
        raise CompassError(
            f"{label} has nothing for {', '.join(repr(m) for m in missing)}",
            code=CODE,
            help="name an array for each input",
        )
    return found


def _check_kind(array: Array, t: Tensor, label: str) -> None:
    if not has_real_numbers(array):
        raise CompassError(f"{label} has {array.dtype} for '{t.name}', expected numbers", code=CODE)


def _count(array: Array, t: Tensor, label: str) -> int:
    """How many samples an array holds: of the tensor's shape, which may begin with one or several samples itself."""
    shape = t.shape
    if array.shape == shape:
        return 1
    if array.shape[1:] == shape:
        return int(array.shape[0])
    if shape and array.shape[1:] == shape[1:] and array.shape and array.shape[0] % shape[0] == 0:
        return int(array.shape[0]) // shape[0]
    raise CompassError(
        f"{label} has the shape {list(array.shape)} for '{t.name}'",
        code=CODE,
        help=f"samples are {list(shape)}, one behind the other along the first axis",
    )


# -- data sets of programs


def from_dataset(dataset: Any, graph: Graph) -> Samples:
    """A sequence of samples: mappings by name, tuples in the order of the inputs, arrays; with a label behind it or not."""

    def get(index: int) -> Mapping[str, Array]:
        return _sample(dataset[index], graph, f"sample {index} of the calibration data")

    made = Samples(len(dataset), get)
    if len(made):
        made[0]
    return made


def _sample(item: object, graph: Graph, label: str) -> Mapping[str, Array]:
    if isinstance(item, (tuple, list)) and len(item) == 2 and len(graph.inputs) == 1:
        item = item[0]  # the other one is a label
    elif isinstance(item, (tuple, list)) and len(item) == 2 and isinstance(item[0], (tuple, list, Mapping)):
        item = item[0]
    if not isinstance(item, Mapping):
        listed = item if isinstance(item, (tuple, list)) and len(graph.inputs) > 1 else [item]
        if len(listed) != len(graph.inputs):
            raise CompassError(f"{label} has {len(listed)} inputs, the graph {len(graph.inputs)}", code=CODE)
        item = dict(zip([t.name for t in graph.inputs], listed, strict=True))
    named = _named({str(k): np.asarray(v) for k, v in item.items()}, graph, label)
    made = {}
    for t in graph.inputs:
        array = named[t.name]
        _check_kind(array, t, label)
        if array.size != t.count or [n for n in array.shape if n != 1] != [n for n in t.shape if n != 1]:
            raise CompassError(
                f"{label} has the shape {list(array.shape)} for '{t.name}'", code=CODE, help=f"expected {list(t.shape)}"
            )
        made[t.name] = array.reshape(t.shape).astype(numpy_dtype(t.dtype), copy=False)
    return made


def from_program(path: Path, name: str, graph: Graph) -> Samples:
    """The samples of the data set that a Python file defines."""
    return _load(program_of(path, name), graph, Pictures())


# -- pictures


def from_images(folder: Path, graph: Graph, pictures: Pictures) -> Samples:
    """The pictures of a folder and those below it, in the order of their names, for the one input of the graph."""
    if len(graph.inputs) != 1:
        raise CompassError(f"a folder of images is for one input, the graph has {len(graph.inputs)}", code=CODE)
    found = pictures_in(folder)
    if not found:
        raise CompassError(
            f"there are no images in '{folder}'", code=CODE, help=f"files ending in {', '.join(SUFFIXES)}"
        )
    need_pillow()
    t = graph.inputs[0]
    layout = _layout(t)
    channels = t.shape[layout.index("C")]
    for what, given in (("mean", pictures.mean), ("std", pictures.std)):
        if len(given) not in (1, channels):
            help = f"one number, or {channels}"
            raise CompassError(f"{len(given)} numbers as {what} of {channels} channels", code=CODE, help=help)
    if any(s == 0 for s in pictures.std):
        raise CompassError("a standard deviation of pictures is 0", code=CODE)
    return Samples(len(found), lambda i: {t.name: _picture(found[i], t, layout, pictures)})


def _layout(t: Tensor) -> str:
    """NHWC or NCHW (without N for three dimensions), by where 1, 3 or 4 channels are."""
    rank = len(t.shape)
    if rank in (3, 4):
        for axis, layout in ((-1, "HWC"), (rank - 3, "CHW")):
            if t.shape[axis] in (1, 3, 4):
                return "N" * (rank - 3) + layout
    raise CompassError(f"the input '{t.name}' of shape {list(t.shape)} is no image", code=CODE)


def _picture(path: Path, t: Tensor, layout: str, pictures: Pictures) -> Array:
    height, width, channels = (t.shape[layout.index(axis)] for axis in "HWC")
    values = pixels(path, height, width, channels, pictures.size) - np.asarray(pictures.mean, np.float32)
    values = values / np.asarray(pictures.std, np.float32)
    ordered = values if layout.endswith("HWC") else values.transpose(2, 0, 1)
    made = np.ascontiguousarray(ordered).reshape(t.shape[-3:])
    if len(t.shape) == 4:
        made = np.repeat(made[None], t.shape[0], 0)
    return made.astype(numpy_dtype(t.dtype), copy=False)
