"""From kernel source to C text, without clang: parse, lower and codegen of every example."""

from __future__ import annotations

from benchmarks.core import Goal, Result, median, seconds
from compassc import passes
from compassc.codegen import generate
from compassc.dsl import parse

from ._examples import TARGET, example_names, kernel

GOALS = {
    "slowest": Goal("parse + lower + codegen, slowest example", "ms", 60),
    "all": Goal("the same, median of the examples", "ms"),
}
ROUNDS = 5


def measure() -> dict[str, Result]:
    times = {name: 1000 * _one(name) for name in example_names()}
    slowest = max(times, key=lambda name: times[name])
    detail = ", ".join(f"{name} {t:.0f}" for name, t in sorted(times.items(), key=lambda item: -item[1])[1:4])
    return {
        "slowest": Result(times[slowest], f"{slowest}; next: {detail}"),
        "all": Result(median(times.values())),
    }


def _one(name: str) -> float:
    function = kernel(name)

    def compile_once() -> None:
        generate(passes.lower(parse(function, TARGET)))

    compile_once()
    return median(seconds(compile_once) for _ in range(ROUNDS))
