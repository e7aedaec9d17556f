"""The database that is part of the package: `python -m compassc.tuning.shipping` searches for operators and layers that
networks are made of, and keeps the best of each that is better than what is chosen without records.

It is made anew when the tables of costs change, or kernels and schedules do; records of another version are not applied.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np

from compassc import te, topi
from compassc.cluster import open_cluster
from compassc.graph import Layer, Tensor
from compassc.topi.schedules import inputs_of
from compassc.tuning import records
from compassc.tuning.layer_task import LayerTask
from compassc.tuning.measure import MeasureOptions
from compassc.tuning.records import Record
from compassc.tuning.sketches import SketchTask
from compassc.tuning.space import key_of
from compassc.tuning.task import Task
from compassc.tuning.tune import TuneOptions, tune
from compassc.tuning.workers import ClusterWorkers, Workers

TARGETS = ("X2_1204", "X3P_1304")
"""Those whose best are part of the package."""
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


def _placeholders(dtype: str, *shapes: Sequence[int]) -> list[te.Tensor]:
    return [te.placeholder(tuple(shape), dtype, name=name) for name, shape in zip("xwb", shapes)]


def _dense(dtype: str, rows: int, depth: int, columns: int) -> te.Tensor:
    x, w = _placeholders(dtype, (rows, depth), (columns, depth))
    return topi.nn.dense(x, w)


def _convolution(dtype: str, size: int, inputs: int, outputs: int, window: int) -> te.Tensor:
    x, w = _placeholders(dtype, (1, size, size, inputs), (window, window, inputs, outputs))
    return topi.nn.conv2d_nhwc(x, w, 1, window // 2)


def _pool(dtype: str, size: int, channels: int, kind: str) -> te.Tensor:
    (x,) = _placeholders(dtype, (1, size, size, channels))
    return topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), kind, layout="NHWC")


def _row_softmax(dtype: str, *shape: int) -> te.Tensor:
    (x,) = _placeholders(dtype, shape)
    return topi.nn.softmax(x)


def _layer_norm(dtype: str, rows: int, columns: int) -> te.Tensor:
    x, w, b = _placeholders(dtype, (rows, columns), (columns,), (columns,))
    return topi.nn.layer_norm(x, w, b, axis=1)


def _row_sums(dtype: str, *shape: int) -> te.Tensor:
    (x,) = _placeholders(dtype, shape)
    return topi.sum(x, axis=-1)


def _sums(dtype: str, *shape: int) -> te.Tensor:
    return topi.add(*_placeholders(dtype, shape, shape))


OPERATORS: tuple[tuple[Callable[..., te.Tensor], tuple[object, ...]], ...] = (
    *((_layer_norm, ("float32", *shape)) for shape in ((64, 256), (64, 768))),
    *((_row_softmax, ("float32", *shape)) for shape in ((64, 256), (16, 1000))),
    *((_pool, ("float32", 28, 64, kind)) for kind in ("max", "avg")),
    *((_dense, (dtype, 1, 512, 256)) for dtype in ("int8", "float32")),
    (_dense, ("int8", 64, 256, 256)),
    *((_row_sums, (dtype, 64, 1024)) for dtype in ("int32", "float32")),
    *((_sums, (dtype, 64, 1024)) for dtype in ("int8", "float32")),
    (_convolution, ("int8", 14, 64, 64, 1)),
    (_convolution, ("int8", 14, 32, 32, 3)),
)
"""Operators of `topi` as networks have them, with their dtypes and sizes."""


def operator_tasks(target: str) -> Iterator[Task]:
    """Operators of `topi`, with all schedules that rules make."""
    for make, about in OPERATORS:
        made = make(*about)
        name = "_".join([make.__name__.strip("_"), *map(str, about)])
        yield SketchTask(name, [*inputs_of([made]), made], target)


_BETTER = 0.995
"""The part of the default's cost that a record must come below to be worth its bytes."""
KINDS: dict[str, Callable[[str], Iterator[Task]]] = {"layers": layer_tasks, "operators": operator_tasks}


def main() -> None:
    """Searches, and writes the best into the folder."""
    parser = argparse.ArgumentParser(prog="python -m compassc.tuning.shipping", description=main.__doc__)
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--target", default=TARGETS[0], choices=TARGETS)
    parser.add_argument("--trials", type=int, default=48)
    parser.add_argument("--patience", type=int, default=24)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--strategy", default="model")
    parser.add_argument("--store", type=Path, default=Path("shipping.jsonl"), help="all measurements, to go on from")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the best go; by default into the package")
    parser.add_argument("--again", action="store_true", help="search nothing: measure the best of the store anew")
    given = parser.parse_args()
    path = given.folder / f"{given.kind}{records.SUFFIX}"
    options = TuneOptions(given.trials, None, given.patience, given.strategy, 0, MeasureOptions(timeout=60))
    with open_cluster(given.jobs) as cluster:
        workers = ClusterWorkers(cluster)
        for task in KINDS[given.kind](given.target):
            if given.again:
                found = measured_again(task, records.read(given.store).records, workers, options.measure)
            else:
                found = tune(task, options, given.store, workers).records
            print(task.name, keep(path, task, found), flush=True)


def measured_again(
    task: Task, stored: Sequence[Record], workers: Workers, options: MeasureOptions, most: int = 2
) -> list[Record]:
    """New measurements of the default and of the best candidates on record, for kernels and schedules change; none where
    nothing else is on record. What is on record of other targets is taken for what is most like it on this one."""
    same = replace(task.workload, target="")
    own = [r for r in stored if r.cost and replace(r.workload, target="").key == same.key]
    own.sort(key=lambda r: (r.workload.target != task.workload.target, r.cost or 0.0))
    rng = Random(0)
    near = [task.space.near(r.candidate, rng) for r in own[: 2 * most]]
    others = {key_of(c): c for c in near if c is not None and c in task.space}
    others.pop(key_of(task.default), None)
    distinct = [task.default, *others.values()][: most + 1]
    if len(distinct) == 1:
        return []
    groups = workers.measure(task, distinct, options)
    return [Record.of(task.workload, distinct[i], options.metric, r) for group in groups for i, r in group]


def keep(path: Path, task: Task, found: Sequence[Record]) -> str:
    """The best of a task goes into the file, in the place of what was there, if it is better than the default, which needs
    no record. What is no longer in the task's space is never taken, and goes from the file, as what is the default by now
    does. Gives the words for that."""
    before = records.read(path).records if path.exists() else ()
    usual_ones = [r for r in before if r.workload.key == task.workload.key and r.candidate == task.default]
    if usual_ones:
        before = tuple(r for r in before if r not in usual_ones)
        records.write(path, before)
    stale = [r for r in before if r.workload.key == task.workload.key and r.candidate not in task.space]
    known = [r for r in found if r.candidate in task.space]
    outside = len(found) - len(known) + len(stale)
    said = f", {outside} outside of the space" if outside else ""
    if not known:
        if stale:
            records.write(path, [r for r in before if r not in stale])
        return f"nothing on record{said}"
    good = [r for r in known if r.cost is not None]
    best = min(good, key=lambda r: r.cost or 0.0, default=None)
    usual = next((r.cost for r in good if key_of(r.candidate) == key_of(task.default)), None)
    is_better = best is not None and best.cost is not None and best.cost < (usual or math.inf) * _BETTER
    kept = [r for r in before if r.workload.key != task.workload.key]
    if best is not None and is_better:
        kept.append(replace(best, seconds={}))
    records.write(path, kept)
    return f"default {usual}, best {best and best.cost}: {'kept' if is_better else 'not kept'}{said}"


if __name__ == "__main__":
    main()
