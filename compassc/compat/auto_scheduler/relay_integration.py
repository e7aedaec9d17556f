"""Tasks of Relay programs: the loops of each of their kernels for the host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from compass_core import files
from compassc.pass_manager.context import PassContext
from compassc.relay.backend.extraction import HostKernel, host_kernels, searched_host
from compassc.relay.tuned import AUTO_SCHEDULER

from .workload import ComputeDAG, HardwareParams, LayoutRewriteOption, SearchTask, register_workload_tensors


def extract_tasks(
    mod: object, params: Mapping[str, object] | None, target: object, target_host: object = None,
    hardware_params: HardwareParams | None = None, include_simple_tasks: bool = False,
    dump_workload_to_dag_log: str | None = None, opt_level: int = 3, other_targets: object = None,
) -> tuple[list[SearchTask], list[int]]:  # fmt: skip
    """The tasks of the kernels of a module or function, each compute graph once, and how many calls there are of each.

    Kernels without a reduction count with `include_simple_tasks`. `desc` of a task: the names of its kernels. `dump_workload_to_dag_log`: a
    file that gets the graphs by their keys, as JSON. Kernels that call functions of the host, and those of open sizes, have no tasks.
    UsageError for targets that have none.
    """
    found: dict[str, tuple[ComputeDAG, list[HostKernel]]] = {}
    with PassContext(opt_level=opt_level, config={AUTO_SCHEDULER: True}):
        for kernel in host_kernels([mod], [params], target):
            if kernel.is_plain and (include_simple_tasks or kernel.has_sums):
                dag = ComputeDAG(kernel.tensors)
                found.setdefault(dag.workload_key(), (dag, []))[1].append(kernel)
    if dump_workload_to_dag_log is not None:
        files.write(Path(dump_workload_to_dag_log), json.dumps({key: str(dag) for key, (dag, _) in found.items()}))
    host = searched_host(target)[1]
    tasks = [
        SearchTask(
            workload_key=register_workload_tensors(key, dag.tensors), compute_dag=dag, target=host, target_host=target_host,
            hardware_params=hardware_params, layout_rewrite_option=LayoutRewriteOption.get_target_default(host, True),
            desc=",".join(k.name for k in kernels),
        )
        for key, (dag, kernels) in found.items()
    ]  # fmt: skip
    return tasks, [sum(k.weight for k in kernels) for _, kernels in found.values()]


def is_auto_scheduler_enabled() -> bool:
    """Whether builds take schedules of kernels from records of the auto-scheduler: the setting `relay.backend.use_auto_scheduler`."""
    return bool(PassContext.current().config.get(AUTO_SCHEDULER))
