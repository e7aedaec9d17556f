"""What a profile run costs: the engine's time for kernels compiled with counters against the same kernels without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.core import Goal, Result, median, median_ratio, side_by_side
from compassc.dsl import BuildManager

from ._examples import TARGET, kernel

ELEMENTS = 1 << 20
ROUNDS = 60
_NAMES = ("dynamic_add", "eltwise_int8", "softmax", "matmul_int8", "silu_lut", "transpose", "max_reduce")
GOALS = {name: Goal(f"{name}, profile on / off", "x", 2.0) for name in _NAMES}


def measure() -> dict[str, Result]:
    rng = np.random.default_rng(0)
    return {name: _compare(name, _arguments(name, rng)) for name in _NAMES}


def _arguments(name: str, rng: np.random.Generator) -> Sequence[Any]:
    def halves(*shape: int) -> Any:
        return rng.normal(0, 4, shape).astype("float16")

    def bytes_(*shape: int) -> Any:
        return rng.integers(-128, 128, shape, dtype="int8")

    makers: dict[str, Callable[[], Sequence[Any]]] = {
        "dynamic_add": lambda: [halves(ELEMENTS), halves(ELEMENTS), halves(ELEMENTS), ELEMENTS],
        "eltwise_int8": lambda: [*(bytes_(ELEMENTS) for _ in range(3)), ELEMENTS, 3, 20000, -5, 15000, 15, 1],
        "softmax": lambda: [halves(1024, 1024), halves(1024, 1024), 1024, 1024],
        "matmul_int8": lambda: [bytes_(128, 512), bytes_(128, 512), np.zeros((128, 128), "int32"), 128, 128, 512],
        "silu_lut": lambda: [halves(ELEMENTS), halves(ELEMENTS), ELEMENTS],
        "transpose": lambda: [*rng.normal(0, 4, (2, 1024, 1024)).astype("float32"), 1024, 1024],
        "max_reduce": lambda: [rng.integers(-(2**31), 2**31, ELEMENTS, dtype="int32"), np.zeros(1, "int32"), ELEMENTS],
    }
    return makers[name]()


def _compare(name: str, arguments: Sequence[Any]) -> Result:
    from compass_runtime.calls import run_loaded
    from compass_runtime.profile.collect import counting

    plain = BuildManager(TARGET).build(kernel(name)).program
    counted = counting(plain).program
    with plain.caller.loaded(arguments) as one, counted.caller.loaded(arguments) as other:
        off, on = side_by_side(
            [lambda: run_loaded(one).seconds, lambda: run_loaded(other, record=True).seconds],
            ROUNDS,
        )
    return Result(median_ratio(on, off), f"{1000 * median(on):.2f} ms, {1000 * median(off):.2f} ms without")
