"""The features of a task's candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from compass_core.errors import CompassError
from compassc import pass_manager, passes
from compassc.dsl.build_manager import BuildManager
from compassc.ir.stmts import IRModule
from compassc.language.info import current_target
from compassc.tuning.cost.features import feature_vector
from compassc.tuning.space import Candidate
from compassc.tuning.task import Infeasible, Task

if TYPE_CHECKING:
    from compassc.tuning.cost.features import Vector


def features_of(task: Task, candidate: Candidate) -> Vector | None:
    """The features of a candidate; None where it has no program. A task may know them itself: `task.features`."""
    own: Callable[[Candidate], Vector | None] | None = getattr(task, "features", None)
    if own is not None:
        return own(candidate)
    try:
        program = task.program(candidate)
        module = program.made.loops = program.made.loops or _lowered(program.kernel, task.workload.target)
    except (Infeasible, CompassError):
        return None
    return feature_vector(module, _sizes(task.arguments() if program.arguments is None else program.arguments, module))


def _lowered(kernel: object, target: str) -> IRModule:
    """The loops of a kernel; those of a lowered schedule are as they will stay."""
    if isinstance(kernel, IRModule):
        return kernel
    with current_target(target):
        return passes.lower(BuildManager(target).parse(kernel), pass_manager.PassOptions())


def _sizes(arguments: Sequence[object], module: IRModule) -> dict[str, float]:
    """The scalar arguments by the names of their parameters."""
    given = zip(module.entry_func.params, arguments, strict=False)
    return {p.name: float(a) for p, a in given if isinstance(a, (bool, int, float))}
