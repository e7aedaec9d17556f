"""Where the time of a network on the simulator goes: each launch beside the least that this host can take for it.

A launch's floor is the longer of two times: its products at the peak of the host's vectors in registers, and the bytes of
its tensors and weights at the speed of a copy. Both peaks are measured by C code (`native/peak_*.c`). Everything has one
processor, and the best of several times counts, which other work on the machine hardly changes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks import native
from benchmarks.networks import Array, Layer, Network
from compass_runtime import Program
from compass_sim.records import Record, RecordKind

TECS = 4
ROUNDS, CHAINS = 200_000, {"float32": (12, 8), "int8": (8, 32)}
"""Of the code that measures peaks: its turns, and per type of numbers the chains of a turn and the products of each."""
WORDS = 1 << 23
TIMES = 9
"""How often a peak is measured, and a network is run: the best time counts."""
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Row:
    """A launch: its layers, the seconds it took and the least it can take."""

    layers: str
    seconds: float
    floor: float


@contextmanager
def one_processor() -> Iterator[None]:
    """Within it, this process and those that it starts have one of its processors."""
    given = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(given)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, given)


@cache
def peak(dtype: str) -> float:
    """Products of numbers of a type that a processor of this host can do in a second."""
    chains, each = CHAINS[dtype]
    sums = np.zeros(TECS * chains * 8, np.float32 if dtype == "float32" else np.int32)
    code = native.Function(f"peak_{dtype}", (sums, ROUNDS))
    return TECS * ROUNDS * chains * each / min(code.seconds() for _ in range(TIMES))


@cache
def copied() -> float:
    """Bytes that a processor of this host can read, and write elsewhere, in a second."""
    code = native.Function("peak_copy", (np.ones(WORDS, np.int32), np.zeros(WORDS, np.int32), WORDS))
    return 8 * WORDS / min(code.seconds() for _ in range(TIMES))


def floor(layers: Iterable[Layer], shapes: Shapes, dtype: str) -> float:
    """The least seconds of layers that are computed in one launch."""
    size, products, moved, made = np.dtype(dtype).itemsize, 0, 0, set()
    for layer in layers:
        moved += sum(math.prod(shapes[name]) for name in layer.inputs if name not in made) * size
        made.add(layer.name)
        if layer.weights is not None:
            products += math.prod(layer.shape[:-1]) * layer.weights.size
            moved += layer.weights.size * size
        last = layer
    moved += math.prod(last.shape) * size
    return max(products / peak(dtype), moved / copied())


def launch_seconds(records: Iterable[Record]) -> list[float]:
    """The time of each launch of a recorded run on one core, from the begin of its first task to the end of its last."""
    times: dict[int, list[list[int]]] = {}
    for record in records:
        if record.kind == RecordKind.TASK_BEGIN:
            times.setdefault(record.tec, []).append([record.time])
        elif record.kind == RecordKind.TASK_END:
            times[record.tec][-1].append(record.time)
    launches = zip(*times.values(), strict=True)
    return [(max(end for _, end in tasks) - min(begin for begin, _ in tasks)) / 1e9 for tasks in launches]


def rows(net: Network, dtype: str, file: Path, inputs: Mapping[str, Array]) -> list[Row]:
    """The launches of a network, which was built to a file."""
    taken = []
    with one_processor():
        program = Program.load(file)
        job, note = program.create_job(), program.note
        assert note is not None, "files of this toolchain tell of their launches"
        for _ in range(TIMES):
            job.run(inputs, record=True)
            assert job.result is not None
            taken.append(launch_seconds(job.result.records))
        numbered = _by_number(net)
        return [
            Row(
                launch.label,
                min(seconds),
                floor([numbered[n] for n in launch.names if n in numbered], net.shapes, dtype),
            )
            for launch, *seconds in zip(note.launches, *taken, strict=True)
        ]


def _by_number(net: Network) -> dict[str, Layer]:
    """Layers by their names in the graph that `compass_form` writes: their type, and which one they are."""
    found, number = {}, 0
    for layer in net.layers:
        number += 1
        for kind in ("convolution", "depthwiseconv", "eltwise", "pooling", "fullyconnected"):
            found[f"{kind}_{number}"] = layer
        number += layer.kind == "mean"  # which a Reshape follows
    return found


def text(title: str, rows: list[Row]) -> str:
    """The table, with the sums in its last line."""
    total = Row("together", sum(row.seconds for row in rows), sum(row.floor for row in rows))
    width = max(len(row.layers) for row in rows)
    lines = [f"{title} on one processor: launches, microseconds, the host's floor, times the floor"]
    lines += [
        f"  {row.layers:{width}}  {1e6 * row.seconds:9.0f}  {1e6 * row.floor:9.0f}  {row.seconds / row.floor:6.1f}"
        for row in (*rows, total)
    ]
    return "\n".join(lines)
