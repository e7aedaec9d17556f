"""From a schedule to something to call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compass_runtime.module import Module
    from compassc.ir.stmts import PrimFunc


def build(schedule: Any, args: Sequence[Any], target: Any = None, name: str = "default_function") -> Module:
    """The module of a schedule for a target: an NPU's name, `llvm`, `c`, `cuda`, or a `compassc.targets.Target`.

    Call it with arrays in the order of `args`; outputs are changed in place. It can be exported and runs without the
    compiler then. LowerError as `lower`, UsageError for targets that are not known.
    """
    from compassc import targets

    return targets.build(schedule, args, target, name)


def create_prim_func(ops: Sequence[Any], index_dtype_override: str | None = None) -> PrimFunc:
    """The function of blocks that computes the tensors among `ops`, its parameters in order: what `tir.Schedule` takes."""
    from compassc.tir import create_prim_func as created

    return created(ops, index_dtype_override)
