"""Builders and runners, and what is told of each measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from compass_core.dataclass import dataclass
from compass_runtime import get_global_func
from compass_runtime.module import Module
from compassc.ir import IRModule
from compassc.targets import Target, build
from compassc.tuning.host_measure import Bench, Plan

from .database import FAILED, MeasureCandidate, TensorInfo, TuningRecord

if TYPE_CHECKING:
    from .tune import TaskScheduler

T = TypeVar("T")


@dataclass
class BuilderInput:
    """A module to build for a target."""

    mod: IRModule
    target: Target | None
    params: Mapping[str, object] | None = None


@dataclass
class BuilderResult:
    """The file of a module, or what was the matter."""

    artifact_path: str | None
    error_msg: str | None


@dataclass
class RunnerInput:
    """A module's file, the kind of device, and its arguments."""

    artifact_path: str
    device_type: str
    args_info: Sequence[TensorInfo]


@dataclass
class RunnerResult:
    """The seconds of calls, or what was the matter."""

    run_secs: list[float] | None
    error_msg: str | None


class RunnerFuture:
    """A result that is there, or will be."""

    def __init__(self, f_done: Callable[[], bool], f_result: Callable[[], RunnerResult]) -> None:
        self.f_done, self.f_result = f_done, f_result

    def done(self) -> bool:
        """Whether it is there."""
        return bool(self.f_done())

    def result(self) -> RunnerResult:
        """The result."""
        return self.f_result()


PyRunnerFuture = RunnerFuture


def _function(given: Callable[..., T] | str | None) -> Callable[..., T] | None:
    """A function, or the global one of that name. ValueError where there is none."""
    if isinstance(given, str):
        found = get_global_func(given, allow_missing=True)
        if found is None:
            raise ValueError(f"Cannot find global function {given}")
        made: Callable[..., T] | None = found.body
        return made
    return given


def _created(what: str, local: Callable[..., T], kind: T | str, options: dict[str, object]) -> T:
    """What a name stands for; one that is there already as it is."""
    if not isinstance(kind, str):
        return kind
    if kind != "local":
        raise ValueError(f"Unknown {what}: {kind}")
    return local(**options)


class Builder:
    """The base of builders."""

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """The files of modules, in order."""
        raise NotImplementedError

    @staticmethod
    def create(kind: Builder | str = "local", **options: object) -> Builder:
        """A builder by name. ValueError for others than `local`."""
        return _created("Builder", LocalBuilder, kind, options)


PyBuilder = Builder
create = Builder.create


class LocalBuilder(Builder):
    """Builds modules in this process. `f_build(mod, target, params)` makes a module in another way."""

    def __init__(
        self, *, max_workers: int | None = None, timeout_sec: float = 30.0,
        f_build: Callable[..., Module] | str | None = None, f_export: Callable[[Module], object] | str | None = None,
        initializer: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """ValueError for names of functions that there are not."""
        self.timeout_sec = timeout_sec
        self._build, self._export = _function(f_build), _function(f_export)
        self._bench = Bench()
        if initializer is not None:
            initializer()

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        return [self._one(given) for given in build_inputs]

    def _one(self, given: BuilderInput) -> BuilderResult:
        def made() -> Module:
            if self._build is not None:
                return self._build(given.mod, given.target, given.params)
            return build(given.mod, None, Target.of(given.target))

        if self._export is not None:
            try:
                return BuilderResult(str(self._export(made())), None)
            except Exception as error:  # noqa: BLE001 - what a candidate raises is about this candidate
                return BuilderResult(None, f"LocalBuilder: An exception occurred\n{error}")
        found = self._bench.build(made, self.timeout_sec)
        if found.error == "timeout":
            return BuilderResult(None, f"LocalBuilder: Timeout, killed after {self.timeout_sec} seconds")
        if found.error:
            return BuilderResult(None, f"LocalBuilder: An exception occurred\n{found.message}")
        return BuilderResult(found.path, None)


@dataclass(frozen=True)
class EvaluatorConfig:
    """How calls are timed: see `compassc.tuning.host_measure.Plan`."""

    number: int = 3
    repeat: int = 1
    min_repeat_ms: float = 100
    enable_cpu_cache_flush: bool = False


class Runner:
    """The base of runners."""

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """What modules take, in order."""
        raise NotImplementedError

    @staticmethod
    def create(kind: Runner | str = "local", **options: object) -> Runner:
        """A runner by name. ValueError for others than `local`."""
        return _created("Runner", LocalRunner, kind, options)


PyRunner = Runner


class LocalRunner(Runner):
    """Runs modules on this machine, in a process of their own."""

    def __init__(
        self, timeout_sec: float = 30.0, evaluator_config: EvaluatorConfig | None = None, cooldown_sec: float = 0.0,
        alloc_repeat: int = 1, initializer: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        config = evaluator_config or EvaluatorConfig()
        self.timeout_sec = timeout_sec
        self._plan = Plan(config.number, config.repeat, config.min_repeat_ms, timeout_sec, cooldown_sec)
        self._bench = Bench()
        if initializer is not None:
            initializer()

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        made = []
        for given in runner_inputs:
            result = self._one(given)
            made.append(RunnerFuture(lambda: True, lambda result=result: result))  # type: ignore[misc]
        return made

    def _one(self, given: RunnerInput) -> RunnerResult:
        arguments = [(info.shape, info.dtype) for info in given.args_info]
        found = self._bench.run(str(given.artifact_path), given.device_type, arguments, self._plan)
        if found.error == "timeout":
            return RunnerResult(None, f"LocalRunner: Timeout, killed after {self.timeout_sec} seconds")
        if found.error:
            return RunnerResult(None, f"LocalRunner: An exception occurred\n{found.message}")
        return RunnerResult(list(found.seconds), None)


class MeasureCallback:
    """The base of what is called after each measurement."""

    def apply(
        self, task_scheduler: TaskScheduler, task_id: int, measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult], runner_results: Sequence[RunnerResult],
    ) -> None:  # fmt: skip
        """Takes results. ValueError where a subclass has none."""
        raise ValueError("apply is not defined")

    @staticmethod
    def create(kind: MeasureCallback | list[MeasureCallback] | str = "default") -> list[MeasureCallback]:
        """Callbacks by name. ValueError for others."""
        kinds: dict[str, Callable[[], list[MeasureCallback]]] = {
            "default": lambda: [AddToDatabase(), RemoveBuildArtifact(), UpdateCostModel()],
            "add-to-database": lambda: [AddToDatabase()],
            "remove-build-artifact": lambda: [RemoveBuildArtifact()],
            "update-cost-model": lambda: [UpdateCostModel()],
        }
        if isinstance(kind, str):
            if kind not in kinds:
                raise ValueError(f"Unknown MeasureCallback: {kind}")
            return kinds[kind]()
        return list(kind) if isinstance(kind, (list, tuple)) else [kind]


PyMeasureCallback = MeasureCallback


class AddToDatabase(MeasureCallback):
    """Keeps records."""

    def apply(
        self, task_scheduler: TaskScheduler, task_id: int, measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult], runner_results: Sequence[RunnerResult],
    ) -> None:  # fmt: skip
        database, context = task_scheduler.database, task_scheduler.tasks_[task_id].ctx
        if database is None or context.mod is None:
            return
        workload = database.commit_workload(context.mod)
        for one, result in zip(measure_candidates, runner_results):
            seconds = list(result.run_secs) if result.run_secs else [FAILED]
            database.commit_tuning_record(TuningRecord(one.sch.trace, workload, seconds, context.target, one.args_info))


class RemoveBuildArtifact(MeasureCallback):
    """Removes the files of modules."""

    def apply(
        self, task_scheduler: TaskScheduler, task_id: int, measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult], runner_results: Sequence[RunnerResult],
    ) -> None:  # fmt: skip
        import os
        from contextlib import suppress

        for result in builder_results:
            if result.artifact_path:
                with suppress(OSError):
                    os.unlink(result.artifact_path)


class UpdateCostModel(MeasureCallback):
    """Has a model learn."""

    def apply(
        self, task_scheduler: TaskScheduler, task_id: int, measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult], runner_results: Sequence[RunnerResult],
    ) -> None:  # fmt: skip
        if task_scheduler.cost_model is not None:
            task_scheduler.cost_model.update(task_scheduler.tasks_[task_id].ctx, measure_candidates, runner_results)
