"""From a schedule to something to call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from compassc import services
from compassc.te.lowering import lower

if TYPE_CHECKING:
    from compass_runtime.module import Module
    from compassc.ir.stmts import PrimFunc
    from compassc.te.buffers import View
    from compassc.te.tensor import Tensor


def build(
    schedule: object,
    args: Sequence[object],
    target: object = None,
    name: str = "default_function",
    binds: Mapping[Tensor, View] | None = None,
) -> Module:
    """The module of a schedule for a target: an NPU's name, `llvm`, `c`, `cuda`, or a `compassc.targets.Target`.

    Call it with arrays in the order of `args`; outputs are changed in place. It can be exported and runs without the
    compiler then. `binds` as for `lower`. LowerError as `lower`, UsageError for targets that are not known.
    """
    made: Module
    if binds is None:
        made = services.build(schedule, args, target, name)
    else:
        made = services.build(lower(schedule, args, name, target, binds=binds), None, target, name)
    return made


def create_prim_func(ops: Sequence[object], index_dtype_override: str | None = None) -> PrimFunc:
    """The function of blocks that computes the tensors among `ops`, its parameters in order: what `tir.Schedule` takes."""
    made: PrimFunc = services.create_prim_func(ops, index_dtype_override)
    return made
