"""The database that is part of the package: `python -m compassc.tuning.shipping` searches for operators and layers that
networks are made of, and keeps the best of each.

It is made anew when the tables of costs change, or kernels and schedules do; records of another version are not applied.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from compassc.cluster import open_cluster
from compassc.graph import Layer, Tensor
from compassc.tuning import records
from compassc.tuning.layer_task import LayerTask
from compassc.tuning.measure import MeasureOptions
from compassc.tuning.task import Task
from compassc.tuning.tune import TuneOptions, tune
from compassc.tuning.workers import ClusterWorkers

FOLDER = Path(__file__).parent / "shipped"
CONVOLUTIONS = (
    *((n, c, c, 3, 1) for n, c in ((56, 64), (28, 128), (14, 256), (7, 512))),
    *((n, a, b, 3, 2) for n, a, b in ((56, 64, 128), (28, 128, 256), (14, 256, 512))),
    *((n, a, b, 1, 1) for n, a, b in ((56, 64, 128), (28, 128, 256), (14, 256, 512))),
)
"""Size of the picture, input and output channels, window, stride: those of residual and mobile networks."""
DEPTHWISE = tuple((n, c, s) for n, c in ((112, 32), (56, 128), (28, 256), (14, 512)) for s in (1, 2))
"""Size of the picture, channels, stride, of windows of 3x3."""


def convolution(size: int, inputs: int, outputs: int, window: int, stride: int, depthwise: bool = False) -> Layer:
    """A quantised convolution with the border that keeps the size (over the stride)."""
    made, pad = -(-size // stride), window // 2
    after = max((made - 1) * stride + window - size - pad, 0)
    rng = np.random.default_rng(size)
    attributes = {"kernel_x": window, "kernel_y": window, "stride_x": stride, "stride_y": stride}
    attributes |= {"dilation_x": 1, "dilation_y": 1, "pad_left": pad, "pad_top": pad, "pad_right": after}
    attributes |= {"pad_bottom": after, "group": inputs if depthwise else 1, "num_output": outputs}
    constants = {
        "weights": rng.integers(-99, 99, (outputs, window, window, 1 if depthwise else inputs)).astype("int8"),
        "biases": rng.integers(-999, 999, outputs).astype("int32"),
        "scale": np.array([3], "uint8"),
        "shift": np.array([12], "int8"),
    }
    x = Tensor("x", (1, size, size, inputs), "int8")
    y = Tensor("y", (1, made, made, outputs), "int8")
    kind = "DepthwiseConv" if depthwise else "Convolution"
    return Layer("y", kind, (x,), (y,), {**attributes, "with_activation": "NONE"}, constants)


def layer_tasks(target: str) -> Iterator[Task]:
    """Convolutions of known networks."""
    for sizes in CONVOLUTIONS:
        yield LayerTask((convolution(*sizes),), target)
    for size, channels, stride in DEPTHWISE:
        yield LayerTask((convolution(size, channels, channels, 3, stride, True),), target)


def product(m: int, n: int, depth: int) -> Any:
    """A product of int8 matrices, with the second one's columns lying in one piece."""
    from compassc import te

    a, b = te.placeholder((m, depth), "int8", name="a"), te.placeholder((n, depth), "int8", name="b")
    k = te.reduce_axis((0, depth), name="k")
    return te.compute((m, n), lambda i, j: te.sum(a[i, k].astype("int32") * b[j, k].astype("int32"), axis=k), name="c")


def operator_tasks(target: str) -> Iterator[Task]:
    """Operators of `topi`, with the knobs of their default schedules."""
    from compassc import te, topi
    from compassc.tuning.templates import KnobsTask

    for sizes in ((64, 256, 256), (128, 256, 256)):
        yield KnobsTask("matmul_int8", product(*sizes), target)
    for shape in ((64, 256), (16, 1024)):
        x = te.placeholder(shape, "float32", name="x")
        yield KnobsTask("softmax", topi.softmax(x), target)
        yield KnobsTask("relu", topi.relu(x), target)


KINDS: dict[str, Callable[[str], Iterator[Task]]] = {"layers": layer_tasks, "operators": operator_tasks}


def main() -> None:
    """Searches, and writes the best into the folder."""
    parser = argparse.ArgumentParser(prog="python -m compassc.tuning.shipping", description=main.__doc__)
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--target", default="X2_1204")
    parser.add_argument("--trials", type=int, default=48)
    parser.add_argument("--patience", type=int, default=24)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--strategy", default="model")
    parser.add_argument("--store", type=Path, default=Path("shipping.jsonl"), help="all measurements, to go on from")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the best go; by default into the package")
    given = parser.parse_args()
    options = TuneOptions(given.trials, None, given.patience, given.strategy, 0, MeasureOptions(timeout=60))
    with open_cluster(given.jobs) as cluster:
        for task in KINDS[given.kind](given.target):
            search = tune(task, options, given.store, ClusterWorkers(cluster))
            if search.best is not None and search.default is not None:
                print(task.name, search.default.cost, search.best.cost, search.best.candidate, flush=True)
            keep(given.folder / f"{given.kind}{records.SUFFIX}", given.store)


def keep(path: Path, store: Path) -> None:
    """The best of each workload of a store, and of what was kept before, becomes the file."""
    before = records.read(path).records if path.exists() else ()
    kept = [replace(r, seconds={}) for r in records.pruned([*records.read(store).records, *before])]
    records.write(path, kept)


if __name__ == "__main__":
    main()
