"""Where the time of a network on the simulator goes: each launch beside the least that this host can take for it.

A launch's floor is the longer of two times: its operations, of which a product and its sum are one, at the peak of the host's
vectors in registers, and the bytes of its tensors and weights at the speed of a copy. Both peaks are measured by C code (`native/peak_*.c`). Everything has one
processor, and the best of several times counts, which other work on the machine hardly changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks import native
from compass_core.arrays import Array
from compass_runtime import Program
from compass_sim.records import Record, RecordKind
from compassc import services
from compassc.graph import Graph, Layer
from compassc.graph.dtypes import numpy_dtype
from compassc.models import Model

TECS = 4
ROUNDS, CHAINS = 200_000, {"float32": (12, 8), "int8": (8, 32)}
"""Of the code that measures peaks: its turns, and per type of numbers the chains of a turn and the products of each."""
WORDS = 1 << 23
TIMES = 9
"""How often a peak is measured, and a network is run: the best time counts."""


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


def floor(graph: Graph, layers: Sequence[Layer]) -> float:
    """The least seconds of layers of a graph that are computed in one launch."""
    own, users = set(layers), graph.users()
    made = {t.name: t for layer in layers for t in layer.outputs}
    read = {t.name: t for layer in layers for t in layer.inputs if t.name not in made}
    ends = {t.name for t in graph.outputs}
    written = [t for name, t in made.items() if name in ends or not own.issuperset(users.get(name, ()))]
    moved = sum(t.count * numpy_dtype(t.dtype).itemsize for t in (*read.values(), *written))
    moved += sum(array.nbytes for layer in layers for array in layer.constants.values())
    busy = sum(services.layer_cost(layer).operations / peak(_numbers(layer)) for layer in layers)
    return max(busy, moved / copied())


def _numbers(layer: Layer) -> str:
    """The type of numbers whose products a layer's take as long as."""
    return "int8" if layer.input.dtype in ("int8", "uint8") else "float32"


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


def rows(model: Model, sample: Mapping[str, Array]) -> list[Row]:
    """The launches of a model."""
    taken = []
    with one_processor():
        program = Program.load(model.path)
        job, note, inputs = program.create_job(), program.note, model.raw_inputs(sample)
        assert note is not None, "files of this toolchain tell of their launches"
        for _ in range(TIMES):
            job.run(inputs, record=True)
            assert job.result is not None
            taken.append(launch_seconds(job.result.records))
        named = {layer.name: layer for layer in model.layers}
        return [
            Row(launch.label, min(seconds), floor(model.graph, [named[name] for name in launch.names]))
            for launch, *seconds in zip(note.launches, *taken, strict=True)
        ]


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
