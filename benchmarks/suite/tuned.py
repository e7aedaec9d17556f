"""What searches find for operators, against kernels by hand and default schedules, in estimated cycles.

By hand: the better one of the kernel in examples/ or benchmarks/kernels and that of the operator library. Schedules are those
that rules make, without a template.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import te_forms
from benchmarks.core import Goal, Result
from benchmarks.loops import EXAMPLES, GROWING
from compassc import te, topi
from compassc.dsl import BuildManager
from compassc.graph import Layer, Tensor
from compassc.tuning import measure as measuring
from compassc.tuning.layer_task import LayerTask
from compassc.tuning.measure import MeasureOptions
from compassc.tuning.shipping import convolution
from compassc.tuning.sketches import SketchTask
from compassc.tuning.tune import TuneOptions, tune

from ._examples import TARGET

TRIALS = 33
IMAGE, CHANNELS = 14, 64


@dataclass(frozen=True)
class Operator:
    """`tensors`: the parameters of its kernel as expressions. `arguments`: those of the kernel by hand, where there is
    one. `layer`: the operator library's."""

    tensors: Callable[[], Sequence[te.Tensor]]
    arguments: Callable[[np.random.Generator], list[Any]] | None
    layer: Callable[[], Layer] | None


def conv3x3_int8() -> list[te.Tensor]:
    """A convolution of bytes with a border, and its sums as bytes."""
    x = te.placeholder((IMAGE, IMAGE, CHANNELS), "int8", name="x")
    w = te.placeholder((CHANNELS, 3, 3, CHANNELS), "int8", name="w")
    bias = te.placeholder((CHANNELS,), "int32", name="bias")
    wide = topi.pad(x, [1, 1, 0])
    di, dj, k = te.reduce_axis((0, 3), "di"), te.reduce_axis((0, 3), "dj"), te.reduce_axis((0, CHANNELS), "k")
    sums = te.compute(
        (IMAGE, IMAGE, CHANNELS),
        lambda i, j, c: te.sum(wide[i + di, j + dj, k].astype("int32") * w[c, di, dj, k].astype("int32"), [di, dj, k]),
        name="sums",
    )
    y = te.compute(
        (IMAGE, IMAGE, CHANNELS),
        lambda i, j, c: te.max(te.min(((sums[i, j, c] + bias[c]) * 3 + 2048) >> 12, 127), -128).astype("int8"),
        name="y",
    )
    return [x, w, bias, y]


def _floats(rng: np.random.Generator, kind: str, *shape: int) -> Any:
    return rng.normal(0, 1, shape).astype(kind)


def _rows(kind: str, dtype: str, rows: int, columns: int, attributes: dict[str, Any], constants: Any = None) -> Layer:
    x, y = (Tensor(name, (1, rows, columns), dtype) for name in "xy")
    return Layer("y", kind, (x,), (y,), attributes, constants or {})


def _affine(count: int) -> dict[str, Any]:
    return {"weights": np.ones(count, np.float32), "biases": np.zeros(count, np.float32)}


def _fully_connected(rows: int, columns: int, depth: int) -> Layer:
    """Which brings its sums to bytes, too."""
    constants = {
        "weights": np.random.default_rng(1).integers(-99, 99, (columns, depth)).astype("int8"),
        "biases": np.zeros(columns, "int32"),
        "scale": np.array([3], "uint8"),
        "shift": np.array([12], "int8"),
    }
    x, y = Tensor("x", (rows, depth), "int8"), Tensor("y", (rows, columns), "int8")
    return Layer("y", "FullyConnected", (x,), (y,), {"num_output": columns, "with_activation": "NONE"}, constants)


def _depthwise(height: int, width: int, channels: int) -> Layer:
    attributes: dict[str, Any] = {"group": channels, "num_output": channels, "multiplier": 1, "with_activation": "NONE"}
    attributes |= {"kernel_x": 3, "kernel_y": 3, "stride_x": 1, "stride_y": 1, "dilation_x": 1, "dilation_y": 1}
    attributes |= {f"pad_{side}": 1 for side in ("left", "right", "top", "bottom")}
    weights = np.random.default_rng(1).normal(0, 0.3, (channels, 3, 3, 1)).astype("float32")
    x, y = (Tensor(name, (1, height, width, channels), "float32") for name in "xy")
    return Layer(
        "y", "DepthwiseConv", (x,), (y,), attributes, {"weights": weights, "biases": np.zeros(channels, "float32")}
    )


OPERATORS: dict[str, Operator] = {
    "matmul_int8": Operator(
        lambda: te_forms.matmul_int8(128, 128, 512)[1],
        lambda r: [
            *(r.integers(-128, 128, (128, 512)).astype("int8") for _ in "ab"),
            np.zeros((128, 128), "int32"),
            *(128, 128, 512),
        ],
        lambda: _fully_connected(128, 128, 512),
    ),
    "conv3x3_int8": Operator(conv3x3_int8, None, lambda: convolution(IMAGE, CHANNELS, CHANNELS, 3, 1)),
    "depthwise_3x3": Operator(
        lambda: te_forms.depthwise_3x3(16, 64, 128)[1],
        lambda r: [
            _floats(r, "float32", 18, 66, 128),
            _floats(r, "float32", 9, 128),
            np.zeros((16, 64, 128), "float32"),
            *(16, 64, 128),
        ],
        lambda: _depthwise(16, 64, 128),
    ),
    "softmax": Operator(
        lambda: te_forms.softmax(256, 1024)[1],
        lambda r: [_floats(r, "float16", 256, 1024), np.zeros((256, 1024), "float16"), 256, 1024],
        lambda: _rows("Softmax", "float16", 256, 1024, {"axis": 2}),
    ),
    "layer_norm": Operator(
        lambda: te_forms.layer_norm(128, 512)[1],
        lambda r: [
            _floats(r, "float32", 128, 512),
            *(_floats(r, "float32", 512) for _ in "wb"),
            np.zeros((128, 512), "float32"),
            *(128, 512),
        ],
        lambda: _rows("LayerNorm", "float32", 128, 512, {"axis": [2], "epsilon": 1e-5}, _affine(512)),
    ),
}
GOALS = {
    "hand": Goal("cycles of the best found, of those by hand, geometric mean", "x", 1.0),
    "default": Goal("cycles of default schedules, of those of the best found, geometric mean", "x", 1.3, at_most=False),
    **{name: Goal(f"{name}, of the cycles by hand", "x") for name in OPERATORS},
}


def searched(name: str) -> tuple[float, float, float]:
    """Cycles by hand, of the default schedule and of the best one that a search finds."""
    operator = OPERATORS[name]
    search = tune(
        SketchTask(name, operator.tensors(), TARGET),
        TuneOptions(TRIALS, strategy="model", measure=MeasureOptions(timeout=120), warm=False),
    )
    assert search.best is not None and search.default is not None
    assert search.best.cost is not None and search.default.cost is not None
    return min(_by_hand(name, operator)), search.default.cost, search.best.cost


def _by_hand(name: str, operator: Operator) -> list[float]:
    from compass_runtime.profile.run import profiled_call

    found: list[float] = []
    if operator.arguments is not None:
        loop = {loop.name: loop for loop in (*EXAMPLES, *GROWING)}[name]
        program = BuildManager(TARGET).build(loop.kernel()).program
        found.append(profiled_call(program, operator.arguments(np.random.default_rng(0))).cycles)
    if operator.layer is not None:
        task = LayerTask((operator.layer(),), TARGET)
        (result,) = measuring.measure(task, [task.default])
        assert result.cost is not None, result.message
        found.append(result.cost)
    return found


def measure() -> dict[str, Result]:
    cycles = {name: searched(name) for name in OPERATORS}
    found = {
        name: Result(best / hand, f"{best:,.0f}; by hand {hand:,.0f}, default {default:,.0f}")
        for name, (hand, default, best) in cycles.items()
    }
    found["hand"] = Result(_mean([best / hand for hand, _, best in cycles.values()]), f"{TRIALS} trials each")
    found["default"] = Result(_mean([default / best for _, default, best in cycles.values()]))
    return found


def _mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
