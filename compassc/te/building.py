"""From a schedule to something to call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from compassc.ir import exprs as E
from compassc.ir.errors import ExpressionError
from compassc.ir.visit import all_exprs
from compassc.te.lowering import lower

if TYPE_CHECKING:
    from compass_runtime.module import Module
    from compassc.ir.stmts import PrimFunc
    from compassc.te.buffers import View
    from compassc.te.tensor import Tensor


def build(
    schedule: Any,
    args: Sequence[Any],
    target: Any = None,
    name: str = "default_function",
    binds: Mapping[Tensor, View] | None = None,
) -> Module:
    """The module of a schedule for a target: an NPU's name, `llvm`, `c`, `cuda`, or a `compassc.targets.Target`.

    Call it with arrays in the order of `args`; outputs are changed in place. It can be exported and runs without the
    compiler then. `binds` as for `lower`. LowerError as `lower`, UsageError for targets that are not known.
    """
    from compassc import targets

    if binds is None:
        return targets.build(schedule, args, target, name)
    chosen = targets.Target.of(target)
    return targets.build(lower(schedule, args, name, chosen, binds=binds), None, chosen, name)


def create_prim_func(ops: Sequence[Any], index_dtype_override: str | None = None) -> PrimFunc:
    """The function of blocks that computes the tensors among `ops`, its parameters in order: what `tir.Schedule` takes."""
    from compassc.tir import create_prim_func as created

    made = created(ops, index_dtype_override)
    calls = [e.func for e in all_exprs(made.body, E.F_FUNC) if isinstance(e, E.FuncCall)]
    if calls:
        raise ExpressionError(
            f"'{calls[0]}' is called, but a function of blocks calls no others", "schedule the tensors with te instead"
        )
    return made
