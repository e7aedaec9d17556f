"""From a schedule to something to call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compass_runtime.module import Module


def build(schedule: Any, args: Sequence[Any], target: Any = None, name: str = "default_function") -> Module:
    """The module of a schedule for a target: an NPU's name, `llvm`, `c`, `cuda`, or a `compassc.targets.Target`.

    Call it with arrays in the order of `args`; outputs are changed in place. It can be exported and runs without the
    compiler then. LowerError as `lower`, UsageError for targets that are not known.
    """
    from compassc import targets

    return targets.build(schedule, args, target, name)
