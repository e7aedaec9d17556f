"""Building and running configurations, with the options and results of `tvm.autotvm.measure`."""

from __future__ import annotations

import enum
import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypedDict

from compass_core.namedtuple import NamedTuple
from compass_runtime.module import Module
from compassc.ir.exprs import IntImm
from compassc.targets import Target, build
from compassc.te.tensor import Tensor
from compassc.tuning.host_measure import Bench, Built, Plan

from .space import ConfigEntity
from .task import InstantiationError, Task

Argument = tuple[tuple[int, ...], str]
"""The shape and the type of elements of an argument."""


class MeasureInput(NamedTuple):
    """What is measured."""

    target: Target
    task: Task
    config: ConfigEntity


class MeasureResult(NamedTuple):
    """Seconds of calls, or an exception in a tuple; the number of the error; the seconds that all took; when it was."""

    costs: tuple[Any, ...]
    error_no: int
    all_cost: float
    timestamp: float


class BuildResult(NamedTuple):
    """A module's file and its arguments, or an error."""

    filename: str | None
    arg_info: tuple[Argument, ...]
    error: MeasureResult | Exception | None
    time_cost: float


class MeasureErrorNo(enum.IntEnum):
    """What was the matter."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


_BUILD_ERRORS = {
    "instantiate": MeasureErrorNo.INSTANTIATION_ERROR,
    "build": MeasureErrorNo.COMPILE_HOST,
    "timeout": MeasureErrorNo.BUILD_TIMEOUT,
}
_RUN_ERRORS = {
    "timeout": MeasureErrorNo.RUN_TIMEOUT,
    "crash": MeasureErrorNo.RUNTIME_DEVICE,
    "run": MeasureErrorNo.RUNTIME_DEVICE,
}
_LONGEST = 1024


class LocalBuilder:
    """Builds modules in this process, `n_parallel` in a batch. `build_func` is `default`, or a function `f(input, folder)` is
    refused: modules are built one way here."""

    def __init__(
        self, timeout: float = 10, n_parallel: int | None = None, build_kwargs: object = None, build_func: object = "default",
        do_fork: bool = False, runtime: object = None,
    ) -> None:  # fmt: skip
        """ValueError for builders of other machines."""
        if build_func not in ("default", "stackvm"):
            raise ValueError(f"Invalid build_func: {build_func}")
        assert do_fork or n_parallel in (None, 1), "if do_fork=False, n_parallel must be None or 1"
        self.timeout, self.n_parallel = timeout, n_parallel or 1
        self.bench = Bench()

    def build(self, measure_inputs: Iterable[MeasureInput]) -> list[BuildResult]:
        """The modules, in order."""
        return [self._built(inp) for inp in measure_inputs]

    def _built(self, inp: MeasureInput) -> BuildResult:
        info: list[Argument] = []

        def made() -> Module:
            schedule, tensors = inp.task.instantiate(inp.config)
            info.extend(_argument(t) for t in tensors)
            return build(schedule, tensors, Target.of(inp.target))

        found = self.bench.build(made, self.timeout)
        if found.error:
            error = MeasureResult((found.message, found.exception), _error_of(found), found.seconds, time.time())
            return BuildResult(None, (), error, found.seconds)
        return BuildResult(found.path, tuple(info), None, found.seconds)


def _error_of(found: Built) -> int:
    if isinstance(found.exception, InstantiationError):
        return MeasureErrorNo.INSTANTIATION_ERROR
    return _BUILD_ERRORS[found.error]


def _argument(tensor: object) -> Argument:
    if not isinstance(tensor, Tensor) or not all(isinstance(d, IntImm) for d in tensor.shape):
        raise InstantiationError([f"the argument {tensor} has no shape of numbers"])
    return tuple(d.value for d in tensor.shape if isinstance(d, IntImm)), str(tensor.dtype)


class LocalRunner:
    """Runs modules on this machine, in a process of their own. See `hosted.Plan` for the numbers."""

    def __init__(
        self, timeout: float = 10, number: int = 4, repeat: int = 3, min_repeat_ms: float = 0,
        cooldown_interval: float = 0.1, enable_cpu_cache_flush: bool = False, module_loader: object = None,
    ) -> None:  # fmt: skip
        """ValueError for loaders of one's own."""
        if module_loader is not None:
            raise ValueError("module_loader is not supported: modules are loaded from their files")
        self.timeout = timeout
        self.plan = Plan(number, repeat, min_repeat_ms, timeout, cooldown_interval)
        self.ref_input: Sequence[object] | None = None
        self.bench = Bench()
        self.n_parallel = 1

    def run(self, measure_inputs: Iterable[MeasureInput], build_results: Iterable[BuildResult]) -> list[MeasureResult]:
        """What the modules take, in order."""
        return [self._run(inp, made) for inp, made in zip(measure_inputs, build_results)]

    def _run(self, inp: MeasureInput, made: BuildResult) -> MeasureResult:
        if made.error is not None:
            return made.error if isinstance(made.error, MeasureResult) else _failed(made.error, made.time_cost)
        start = time.perf_counter()
        assert made.filename is not None
        arguments = (
            made.arg_info if self.ref_input is None else [getattr(x, "numpy", lambda x=x: x)() for x in self.ref_input]
        )
        found = self.bench.run(made.filename, Target.of(inp.target).kind.device, arguments, self.plan)
        spent = time.perf_counter() - start + made.time_cost
        if found.error:
            costs = (found.message[:_LONGEST], RuntimeError(found.message[:_LONGEST]))
            return MeasureResult(costs, _RUN_ERRORS[found.error], spent, time.time())
        kept = sorted(found.seconds)[1:-1] if len(found.seconds) > 2 else found.seconds
        return MeasureResult(tuple(kept), MeasureErrorNo.NO_ERROR, spent, time.time())


def _failed(error: Exception, seconds: float) -> MeasureResult:
    return MeasureResult((str(error), error), MeasureErrorNo.UNKNOWN_ERROR, seconds, time.time())


class RPCRunner(LocalRunner):
    """Runs modules on machines of a tracker. RuntimeError: their servers run modules of NPUs alone, by `compassc tune`."""

    def __init__(self, key: str, host: str, port: int, *args: object, **options: object) -> None:
        raise RuntimeError(
            f"Cannot get remote devices from the tracker. {host}:{port} has servers for programs of NPUs; `compassc tune --tracker` uses them"
        )


class Builder(Protocol):
    """Who builds."""

    n_parallel: int

    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[BuildResult]:
        """The modules, in order."""


class Runner(Protocol):
    """Who runs."""

    def run(self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult]) -> list[MeasureResult]:
        """What the modules take, in order."""


class MeasureOption(TypedDict):
    """Who builds and who runs."""

    builder: Builder
    runner: Runner


def measure_option(builder: Builder | str, runner: Runner | str) -> MeasureOption:
    """Who builds and who runs; `local` is this machine. ValueError for other words."""
    for name, given in (("builder", builder), ("runner", runner)):
        if isinstance(given, str) and given != "local":
            raise ValueError(f"Invalid {name}: {given}")
    return {
        "builder": LocalBuilder() if isinstance(builder, str) else builder,
        "runner": LocalRunner() if isinstance(runner, str) else runner,
    }


class MeasureBatch:
    """Measures some inputs; `n_parallel`: how many at once."""

    def __init__(self, option: MeasureOption) -> None:
        self.builder, self.runner = option["builder"], option["runner"]
        self.n_parallel = self.builder.n_parallel

    def __call__(self, measure_inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        return self.runner.run(measure_inputs, self.builder.build(measure_inputs))


def create_measure_batch(task: Task, option: MeasureOption) -> MeasureBatch:
    """What measures inputs."""
    return MeasureBatch(option)
