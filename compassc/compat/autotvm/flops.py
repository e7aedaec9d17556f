"""How many operations a schedule's expressions do."""

from __future__ import annotations

from math import prod

from compassc.ir import exprs as E
from compassc.ir.exprs import Expr, IntImm
from compassc.ir.iter_vars import IterVar
from compassc.ir.tensor_exprs import ProducerLoad, Reduce
from compassc.te.schedule import Schedule
from compassc.te.tensor import ComputeOp, PlaceholderOp, post_order


class FlopCalculationError(RuntimeError):
    """Operations that cannot be counted."""


def _extent(axis: IterVar) -> int:
    extent = axis.dom.extent if axis.dom is not None else None
    if not isinstance(extent, IntImm):
        raise FlopCalculationError(f"The length of axis {axis.name} is no number")
    return extent.value


def operations(e: object) -> float:
    """The operations of an expression: each arithmetic, comparison and logical operation is one, a sum is all of its turns; indices do not count."""
    if isinstance(e, Reduce):
        turns = prod(map(_extent, e.axis))
        return turns * (sum(map(operations, e.combiner.result)) + sum(map(operations, e.source)))
    if isinstance(e, E.Select):
        return operations(e.condition) + max(operations(e.true_value), operations(e.false_value))
    if isinstance(e, E.Binary):
        return 1 + operations(e.a) + operations(e.b)
    if isinstance(e, E.Unary):
        return 1 + operations(e.a)
    if isinstance(e, E.Call):
        return sum(map(operations, e.args))
    if isinstance(e, (ProducerLoad, E.BufferLoad)) or not isinstance(e, Expr):
        return 0
    return sum(map(operations, e.children()))


def compute_flop(sch: Schedule) -> float:
    """The operations of all computations behind the outputs of a schedule. RuntimeError, which says to call
    `cfg.add_flop`, where there are none, or they cannot be counted."""
    total = 0.0
    try:
        for op in post_order(list(sch.outputs)):
            if isinstance(op, PlaceholderOp):
                continue
            if not isinstance(op, ComputeOp):
                raise FlopCalculationError(f"{op.name} is no computation of expressions")
            total += prod(map(_extent, op.axis)) * sum(map(operations, op.body))
    except FlopCalculationError as error:
        raise RuntimeError(
            f"FLOP estimator fails for this operator. Error msg: {error}. Please use `cfg.add_flop` to manually set FLOP for this operator"
        ) from None
    if total == 0:
        raise RuntimeError(
            "Cannot find float number operation in this operator. Please use `cfg.add_flop` to manually set FLOP for this operator"
        )
    return total
