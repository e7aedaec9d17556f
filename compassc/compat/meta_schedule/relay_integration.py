"""Tasks of Relay programs: each of their kernels for the host as a function of blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compass_core.dataclass import dataclass
from compassc.ir import IRModule as Lowered
from compassc.pass_manager.context import PassContext
from compassc.pass_manager.instruments import PassInstrument
from compassc.relay import IRModule
from compassc.relay.backend.build import build
from compassc.relay.backend.extraction import HostKernel, host_kernels, searched_host
from compassc.relay.backend.vm import compile as compile_for_machine
from compassc.relay.expr import GlobalVar
from compassc.relay.tuned import META_SCHEDULE
from compassc.targets import Target
from compassc.te.building import create_prim_func

from .cost import CostModel
from .database import DISPATCH, Database, MemoryDatabase, module_of
from .measure import Builder, MeasureCallback, Runner
from .search import SearchStrategy
from .space import SpaceGenerator
from .tune import TaskScheduler, TuneContext, tune_tasks


@dataclass
class ExtractedTask:
    """A kernel of a program: its name, a module of its function of Relay, the target, what it is lowered to without a schedule (a list
    of one module), and how many calls there are of it."""

    task_name: str
    mod: IRModule
    target: Target
    dispatched: list[Lowered]
    weight: int


def _config(given: Mapping[str, object] | None) -> dict[str, object]:
    return {**(given or {}), META_SCHEDULE: True}


def extract_tasks(
    mod: object, target: object, params: Mapping[str, object] | None, *, opt_level: int = 3,
    pass_config: Mapping[str, object] | None = None, executor: object = None, runtime: object = None,
    module_equality: str = "structural", disabled_pass: Sequence[str] | None = None, instruments: Sequence[PassInstrument] | None = None,
) -> list[ExtractedTask]:  # fmt: skip
    """The tasks of the kernels of a module or function, each lowered module once, those of the end of the program first.

    Kernels that call functions of the host, and those of open sizes, have no tasks. UsageError for targets that have none; ValueError
    for other kinds of equality than databases have.
    """
    known, host = MemoryDatabase(module_equality), searched_host(target)[1]
    tasks: dict[int, ExtractedTask] = {}
    with PassContext(
        opt_level=opt_level, disabled_pass=disabled_pass, instruments=instruments, config=_config(pass_config)
    ):
        kernels = host_kernels([mod], [params], target)
    for kernel in reversed([k for k in kernels if k.is_plain]):
        workload = known.commit_workload(module_of(create_prim_func(kernel.tensors)))
        if id(workload) in tasks:
            tasks[id(workload)].weight += kernel.weight
        else:
            tasks[id(workload)] = _task(kernel, workload.mod, host)
    return list(tasks.values())


def _task(kernel: HostKernel, module: Lowered, host: Target) -> ExtractedTask:
    return ExtractedTask(
        kernel.name, IRModule({GlobalVar(kernel.name): kernel.function}), host, [module], kernel.weight
    )


def extracted_tasks_to_tune_contexts(
    extracted_tasks: Sequence[ExtractedTask], work_dir: str, space: object = "post-order-apply", strategy: object = "evolutionary",
    num_tuning_cores: int | str = "physical", seed: int | None = None,
) -> tuple[list[TuneContext], list[float]]:  # fmt: skip
    """A context for each task, and their weights. The same `seed` gives the same candidates as long as the times are alike."""
    Path(work_dir).mkdir(parents=True, exist_ok=True)
    count = len(extracted_tasks)
    states = [-1] * count if seed is None else np.random.RandomState(seed).randint(1, 2**30, count).tolist()
    contexts = [
        TuneContext(
            task.dispatched[0], target=task.target, task_name=task.task_name, rand_state=int(state),
            num_threads=num_tuning_cores,
            space_generator=space.clone() if isinstance(space, SpaceGenerator) else space,
            search_strategy=strategy.clone() if isinstance(strategy, SearchStrategy) else strategy,
        )
        for task, state in zip(extracted_tasks, states)
    ]  # fmt: skip
    return contexts, [float(task.weight) for task in extracted_tasks]


def tune_relay(
    mod: object, params: Mapping[str, object] | None, target: object, work_dir: str, max_trials_global: int, *,
    max_trials_per_task: int | None = None, num_trials_per_iter: int = 64, builder: Builder | str = "local", runner: Runner | str = "local",
    database: Database | str | None = "json", cost_model: CostModel | str = "xgb", measure_callbacks: MeasureCallback | list[MeasureCallback] | str = "default", task_scheduler: TaskScheduler | str = "gradient",
    space: object = "post-order-apply", strategy: object = "evolutionary", seed: int | None = None,
    module_equality: str = "structural", num_tuning_cores: int | str = "physical", disabled_pass: Sequence[str] | None = None,
    instruments: Sequence[PassInstrument] | None = None,
) -> Database | None:  # fmt: skip
    """Searches schedules of the kernels of a program: `extract_tasks`, then `tune_tasks`."""
    tasks, weights = extracted_tasks_to_tune_contexts(
        extract_tasks(
            mod, target, params, module_equality=module_equality, disabled_pass=disabled_pass, instruments=instruments
        ),
        work_dir, space, strategy, num_tuning_cores, seed,
    )  # fmt: skip
    return tune_tasks(
        tasks=tasks, task_weights=weights, work_dir=work_dir, max_trials_global=max_trials_global,
        max_trials_per_task=max_trials_per_task, num_trials_per_iter=num_trials_per_iter, builder=builder, runner=runner,
        database=database, cost_model=cost_model, measure_callbacks=measure_callbacks, task_scheduler=task_scheduler,
        module_equality=module_equality,
    )  # fmt: skip


def compile_relay(
    database: Database, mod: object, target: object, params: Mapping[str, object] | None, *, backend: str = "graph", opt_level: int = 3,
    pass_config: Mapping[str, object] | None = None, executor: object = None, disabled_pass: Sequence[str] | None = None,
    runtime: object = None, instruments: Sequence[PassInstrument] | None = None,
) -> Any:  # fmt: skip
    """The program with schedules of a database: of `relay.build` with the backend `graph`, of `relay.vm.compile` with `vm`. ValueError
    for other backends."""
    makers: dict[str, Callable[[], object]] = {
        "graph": lambda: build(mod, target, executor=executor, runtime=runtime, params=params),
        "vm": lambda: compile_for_machine(mod, target, params=params),
    }
    if backend not in makers:
        raise ValueError(f"Unknown backend: {backend}")
    config = {DISPATCH: True, **_config(pass_config)}
    with database, PassContext(
        opt_level=opt_level, disabled_pass=disabled_pass, instruments=instruments, config=config
    ):  # fmt: skip
        return makers[backend]()


def is_meta_schedule_enabled() -> bool:
    """Whether builds take schedules of kernels from a database: the setting `relay.backend.use_meta_schedule`."""
    return bool(PassContext.current().config.get(META_SCHEDULE))
