"""Measuring functions: groups of calls, and the statistics of their times."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from compass_core.dataclass import dataclass
from compass_runtime.errors import RuntimeValueError
from compass_runtime.packed import get_global_func

if TYPE_CHECKING:
    from compass_runtime.devices import Device


@dataclass(frozen=True)
class BenchmarkResult:
    """Seconds per call: the mean of each group of calls in `results`, and their statistics.

    `device` has, where it is known, the seconds that the device itself was busy, in the same groups; the difference to
    `results` is what starting a job and waiting for it costs on the host.
    """

    results: tuple[float, ...]
    device: BenchmarkResult | None = None

    @property
    def mean(self) -> float:
        return sum(self.results) / len(self.results)

    @property
    def median(self) -> float:
        ordered, half = sorted(self.results), len(self.results) // 2
        return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    @property
    def std(self) -> float:
        made: float = (sum((r - self.mean) ** 2 for r in self.results) / len(self.results)) ** 0.5
        return made

    def __str__(self) -> str:
        names = ("mean", "median", "max", "min", "std")
        head = "".join(f"{f'{name} (ms)':^14}" for name in names)
        values = "".join(f"{getattr(self, name) * 1e3:^14.4f}" for name in names)
        return f"Execution time summary:\n{head}\n{values}"


@dataclass(frozen=True)
class Plan:
    """How to measure: `repeat` groups of `number` calls, `number` growing until a group takes `min_repeat_ms`.

    A group that took no measurable time counts against `limit_zero_time_iterations`; after every `repeats_to_cooldown`
    groups the machine rests for `cooldown_interval_ms`.
    """

    number: int = 10
    repeat: int = 1
    min_repeat_ms: float = 0
    limit_zero_time_iterations: int = 100
    cooldown_interval_ms: float = 0
    repeats_to_cooldown: int = 1

    def __post_init__(self) -> None:
        for name in ("number", "repeat", "repeats_to_cooldown"):
            if getattr(self, name) < 1:
                raise RuntimeValueError(f"{name} is {getattr(self, name)}; at least 1 is needed", code="benchmark")


def measure(
    call: Callable[[], float | None], plan: Plan, before: Callable[[], object] | None = None
) -> BenchmarkResult:
    """One warm-up call, then the groups. `call` may return how long the device was busy; `before` runs once a group."""
    first = call()
    number, groups, busy_groups = plan.number, [], []
    for repeat in range(plan.repeat):
        for _ in range(plan.limit_zero_time_iterations + 1):
            if before is not None:
                before()
            seconds, busy = _group(call, number)
            if seconds * 1e3 >= plan.min_repeat_ms and (seconds > 0 or plan.min_repeat_ms == 0):
                break
            per_call = seconds * 1e3 / number
            wanted = plan.min_repeat_ms / per_call + 1 if per_call else 0
            number = int(max(wanted, number * 1.618 + 1))
        groups.append(seconds / number)
        busy_groups.append(busy / number)
        if plan.cooldown_interval_ms and (repeat + 1) % plan.repeats_to_cooldown == 0:
            time.sleep(plan.cooldown_interval_ms / 1e3)
    device = BenchmarkResult(tuple(busy_groups)) if first is not None else None
    return BenchmarkResult(tuple(groups), device)


def _group(call: Callable[[], float | None], number: int) -> tuple[float, float]:
    busy = 0.0
    start = time.perf_counter()
    for _ in range(number):
        busy += call() or 0.0
    return time.perf_counter() - start, busy


def time_evaluator(
    function: Callable[..., object], dev: Device, plan: Plan, cache_flush_bytes: int = 0, f_preproc: str = ""
) -> Callable[..., BenchmarkResult]:
    """A function that measures `function` with the arguments it is called with; see `Module.time_evaluator`."""
    preparation = get_global_func(f_preproc) if f_preproc else None

    def before() -> None:
        if preparation is not None:
            preparation()
        if cache_flush_bytes:
            bytearray(cache_flush_bytes)
        dev.sync()

    def evaluate(*args: object) -> BenchmarkResult:
        def call() -> None:
            function(*args)

        return measure(call, plan, before)

    return evaluate
