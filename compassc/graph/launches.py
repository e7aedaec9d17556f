"""The launches of a graph: which layers one kernel computes together, and why no more of them.

A graph is grouped by passes (`compassc.layers.launches`), from launches of one layer each. The text of the result
reads well, and back: `compassc gbuild --launches FILE` builds the groups that it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Protocol

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Span
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.tensor import Tensor


class LaunchKernel(Protocol):
    """The kernel of a launch: its name, and its text to read."""

    @property
    def name(self) -> str: ...

    @property
    def listing(self) -> str: ...


@dataclass(frozen=True)
class Launch:
    """Layers that one kernel computes, in order.

    `ends`: why the layer behind them is not one of them. `plugin`: who makes the kernel, where that are not the built-in
    layers. `kernel`: the kernel of the built-in layers, once it is known; `refused`: why there is none.
    `cycles`: estimated ones of a run; None: nobody asked.
    """

    layers: tuple[Layer, ...]
    ends: str = ""
    plugin: str = ""
    kernel: LaunchKernel | None = field(default=None, compare=False)
    refused: str = ""
    cycles: int | None = None

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        """What it reads that another launch, or the outside, makes."""
        made = {t.name for layer in self.layers for t in layer.outputs}
        return tuple({t.name: t for layer in self.layers for t in layer.inputs if t.name not in made}.values())

    @property
    def inner(self) -> tuple[Tensor, ...]:
        """What stands between its layers, and is never in memory."""
        used = {t.name for layer in self.layers for t in layer.inputs}
        return tuple(t for layer in self.layers[:-1] for t in layer.outputs if t.name in used)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """What it makes for others."""
        inner = {t.name for t in self.inner}
        return tuple(t for layer in self.layers for t in layer.outputs if t.name not in inner)


@dataclass(frozen=True)
class Launches:
    """A graph and its launches in order. `owners`: by a tensor that is a view of another one or a part of it, that one;
    layers that only make such are in no launch. `target`: what kernels are made for."""

    graph: Graph
    launches: tuple[Launch, ...]
    owners: Mapping[str, str] = field(default_factory=dict)
    target: str = ""

    def owner(self, tensor: Tensor) -> str:
        """The name of the tensor in whose memory a tensor lies."""
        return self.owners.get(tensor.name, tensor.name)

    def users(self) -> dict[str, list[Layer]]:
        """The layers that read a tensor's memory, by the name of its owner; one that reads it twice is there twice."""
        found: dict[str, list[Layer]] = {}
        for launch in self.launches:
            for layer in launch.layers:
                for tensor in layer.inputs:
                    found.setdefault(self.owner(tensor), []).append(layer)
        return found


# ------------------------------------------------------------------------------------------------------------- text


def write_launches(program: Launches, names: Sequence[str] = ()) -> str:
    """The launches as text; of the layers called `names` only, where there are names."""
    layers = sum(len(launch.layers) for launch in program.launches)
    counted = [launch.cycles for launch in program.launches if launch.cycles is not None]
    cycles = f", about {sum(counted):,} cycles" if counted else ""
    head = f"# {program.graph.name}: {layers} layers in {len(program.launches)} launches on {program.target}{cycles}"
    shown = [
        _shown(number, launch, program)
        for number, launch in enumerate(program.launches)
        if not names or any(layer.name in names for layer in launch.layers)
    ]
    return "\n\n".join([head, *shown]) + "\n"


def _shown(number: int, launch: Launch, program: Launches) -> str:
    width = max(len(layer.name) for layer in launch.layers)
    kernel = launch.kernel.name if launch.kernel is not None else ""
    rows = [("layer", f"{layer.name:{width}}  {layer.type}") for layer in launch.layers]
    rows += [
        ("ends", launch.ends),
        ("plugin", launch.plugin),
        ("kernel", f"none: {launch.refused}" if launch.refused else kernel),
        ("reads", _bytes(launch.inputs)),
        ("weights", f"{weights:,} bytes" if (weights := sum(_weights(launch))) else ""),
        ("writes", _bytes(launch.outputs)),
        ("inside", f"{_bytes(launch.inner)}, never in memory" if launch.inner else ""),
        ("cycles", "" if launch.cycles is None else f"about {launch.cycles:,}"),
    ]
    return "\n".join([f"launch {number}", *(f"    {key:8}{text}" for key, text in rows if text)])


def _bytes(tensors: Iterable[Tensor]) -> str:
    return ", ".join(f"{t.name} {t.dtype}{list(t.shape)} {_size(t):,} bytes" for t in tensors)


def _size(tensor: Tensor) -> int:
    return tensor.count * numpy_dtype(tensor.dtype).itemsize


def _weights(launch: Launch) -> Iterable[int]:
    return (array.nbytes for layer in launch.layers for array in layer.constants.values())


_ROW = re.compile(r"    (layer|plugin)  +(.*\S)\Z")


def read_launches(text: str, path: str) -> list[list[str]]:
    """The names of the layers of each launch in a text of launches, without those of plugins. CompassError for a line that
    is none of such a text."""
    found: list[list[str]] = []
    foreign: set[int] = set()
    for number, line in enumerate(text.splitlines(), 1):
        row = _ROW.match(line)
        if re.match(r"launch \d+\Z", line):
            found.append([])
        elif row and found and row[1] == "plugin":
            foreign.add(len(found) - 1)
        elif row and found:
            found[-1].append(row[2].rpartition(" ")[0].rstrip())
        elif line.strip() and not line.startswith(("#", "    ")):
            raise CompassError(
                f"'{line:.60}' is no line of a text of launches", Span(path, number), code="bad-launches"
            )
    if not found or not all(found):
        help = "`compassc group` writes such texts"
        raise CompassError("a launch has no layer", Span(path, 1), code="bad-launches", help=help)
    return [names for i, names in enumerate(found) if i not in foreign]
