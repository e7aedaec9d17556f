"""Kernels of tiles against kernels by hand, in estimated cycles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.core import ROOT, Goal, Result
from compassc.dsl import BuildManager, load_kernels

from ._examples import TARGET

PAIRS = (
    ("tile_matmul", "examples/matmul_int8/kernel.py"),
    ("tile_softmax", "examples/softmax/kernel.py"),
    ("tile_layer_norm", "benchmarks/by_hand/layer_norm.py"),
    ("tile_attention", "benchmarks/by_hand/attention.py"),
    ("tile_conv3x3", "benchmarks/by_hand/conv3x3.py"),
)
"""The examples, and the kernels that they are held against."""
GOALS = {name: Goal(f"{name}, cycles by hand / cycles", "x", 0.8, at_most=False) for name, _ in PAIRS}


def measure() -> dict[str, Result]:
    return {name: _compare(name, by_hand) for name, by_hand in PAIRS}


def _arguments(name: str) -> list[Any]:
    rng = np.random.default_rng(0)

    def halves(*shape: int) -> Any:
        return rng.normal(0, 1, shape).astype("float16")

    def bytes_(*shape: int) -> Any:
        return rng.integers(-128, 128, shape, dtype="int8")

    makers: dict[str, Callable[[], list[Any]]] = {
        "tile_matmul": lambda: [bytes_(64, 512), bytes_(64, 512), np.zeros((64, 64), "int32"), 64, 64, 512],
        "tile_softmax": lambda: [halves(64, 1000), np.zeros((64, 1000), "float16"), 64, 1000],
        "tile_layer_norm": lambda: [
            halves(64, 500),
            *rng.normal(0, 1, (2, 500)).astype("float32"),
            np.zeros((64, 500), "float16"),
            64,
            500,
            1e-3,
        ],
        "tile_attention": lambda: [halves(96, 64), *halves(2, 160, 64), np.zeros((96, 64), "float16"), 96, 160],
        "tile_conv3x3": lambda: [bytes_(16, 64, 32), bytes_(288, 32), np.zeros((16, 64, 32), "int8"), 16, 64, 10],
    }
    return makers[name]()


def _compare(name: str, by_hand: str) -> Result:
    from compass_runtime.profile.run import profiled_call

    cycles, results = [], []
    for path in (f"examples/{name}/kernel.py", by_hand):
        kernel = load_kernels(ROOT / path).entry()
        arguments = _arguments(name)
        cycles.append(profiled_call(BuildManager(TARGET).build(kernel).program, arguments).cycles)
        results.append(next(a for a in reversed(arguments) if isinstance(a, np.ndarray)).astype("float64"))
    if not np.allclose(results[0], results[1], rtol=1e-2, atol=4e-3):
        raise ValueError(f"{name}: the result is not the kernel's, so its cycles say nothing")
    return Result(cycles[1] / cycles[0], f"{cycles[0]:,}, by hand {cycles[1]:,}")
