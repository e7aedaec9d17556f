"""What builds ask records of tuning: which implementation of an operator is best, and how its kernel is scheduled.

Within `consulted(records)` they are asked for each kernel of the host; without it nothing is. The workload of a call is plain values: the
name of its operator, `("TENSOR", shape, dtype)` of each argument, and its attributes as pairs.

Schedules of whole kernels, of a search that knows no operators, are those of `scheduled_by(setting, schedules)`, where the setting of passes
is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Protocol

from compass_core.errors import UsageError
from compassc.ir import IRModule as Lowered
from compassc.ir.errors import ExpressionError
from compassc.ir.exprs import FuncCall
from compassc.ir.visit import walk_exprs
from compassc.pass_manager.context import PassContext
from compassc.relay.builders import call
from compassc.relay.expr import Call, Function, Var
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes import infer_type
from compassc.relay.types import TensorType, is_dynamic
from compassc.targets import Target
from compassc.te.schedule import Schedule
from compassc.te.tensor import ComputeOp, PlaceholderOp, Tensor, post_order

Workload = tuple[object, ...]
ANCHORS = frozenset(
    f"nn.{name}"
    for name in """batch_matmul conv1d conv1d_transpose conv2d conv2d_transpose conv3d conv3d_transpose contrib_dense_pack dense
    matmul""".split()
)
"""The operators whose kernels have knobs: sums of products."""
KNOBS: Mapping[str, Sequence[int]] = {
    "rows": (0, 1, 2, 3, 4, 6, 8),
    "columns": (0, 1, 2, 3, 4),
    "lanes": (0, 4, 8, 16, 32),
    "blocks": (0, 1, 2, 4, 8, 16),
}
"""The values that knobs of their schedules have (`topi.schedules.Knobs`), the first what they are by default."""
KINDS = ("llvm", "c")
"""The kinds of targets that these are for."""


class Records(Protocol):
    """Where records are looked up."""

    def cost(self, op: str, outputs: Sequence[Tensor], target: Target) -> float | None:
        """The seconds on record for what an implementation of an operator computes; None where there is no record."""

    def knobs(self, workload: Workload, target: Target) -> Mapping[str, object] | None:
        """The knobs that are best on record for a workload; None where there is no record."""


_consulted: ContextVar[Records | None] = ContextVar("records of tuning", default=None)
records = _consulted.get
"""`()`: the records that are asked here and now, or None."""


@contextmanager
def consulted(asked: Records) -> Iterator[None]:
    """Within, builds ask these records."""
    token = _consulted.set(asked)
    try:
        yield
    finally:
        _consulted.reset(token)


Schedules = Callable[[Sequence[Tensor], Target, str], Schedule | Lowered | None]
"""What schedules the kernel of these inputs and results for a target; its name is for messages. None where it has no schedule for it."""
META_SCHEDULE, AUTO_SCHEDULER = "relay.backend.use_meta_schedule", "relay.backend.use_auto_scheduler"
_schedules: ContextVar[Mapping[str, Schedules]] = ContextVar("schedules of kernels", default=MappingProxyType({}))


class _NoSchedules(UsageError, ValueError):
    """A setting has builds ask for schedules, and there is nobody to ask."""


@contextmanager
def scheduled_by(setting: str, schedules: Schedules) -> Iterator[None]:
    """Within, builds take the schedules of kernels from here where the setting of passes is on."""
    token = _schedules.set({**_schedules.get(), setting: schedules})
    try:
        yield
    finally:
        _schedules.reset(token)


def is_plain(tensors: Sequence[Tensor]) -> bool:
    """Whether tensors are made by expressions that call no functions of the host, so that all loops are there to be scheduled."""
    found = post_order([t.op for t in tensors])
    return all(isinstance(op, PlaceholderOp) or (isinstance(op, ComputeOp) and _calls_none(op)) for op in found)


def _calls_none(op: ComputeOp) -> bool:
    return not any(isinstance(e, FuncCall) for b in op.body for e in walk_exprs(b))


def schedule_of(tensors: Sequence[Tensor], target: Target, name: str) -> Schedule | Lowered | None:
    """The schedule on record of a whole kernel, or None: of the first setting that is on and has one. UsageError (a ValueError) where
    schedules are to come from a database and there is none."""
    config, known = PassContext.current().config, _schedules.get()
    for setting in (META_SCHEDULE, AUTO_SCHEDULER):
        if not config.get(setting):
            continue
        asked = known.get(setting)
        if asked is not None and is_plain(tensors) and (found := asked(tensors, target, name)) is not None:
            return found
        if asked is None and setting == META_SCHEDULE:
            raise _NoSchedules(
                "`use_meta_schedule` is enabled in pass context, but no `meta_schedule.Database` context is provided",
                code="relay-target",
                help="build within `with database:`, or leave the setting out",
            )
    return None


def knobs_of(e: Call, target: Target) -> Mapping[str, object]:
    """The knobs on record of the kernel of a call; none of its own without a record. ExpressionError for those that there are not."""
    asked, workload = records(), workload_of(e, target)
    found = asked.knobs(workload, target) if asked is not None and workload is not None else None
    for name, value in (found or {}).items():
        if type(value) is not int or value not in KNOBS.get(name, ()):
            raise ExpressionError(
                f"the record of {op_name(e)} sets {name} to {value!r}, which its kernels do not have", "tune it again"
            )
    return found or {}


def workload_of(e: Call, target: Target) -> Workload | None:
    """The workload of a call; None where its kernel has no knobs: for other operators and targets, and where sizes are open."""
    types = [a.checked_type for a in e.args]
    if op_name(e) not in ANCHORS or target.kind.name not in KINDS or any(map(is_dynamic, types)):
        return None
    tensors = [("TENSOR", t.concrete_shape, str(t.dtype)) for t in types if isinstance(t, TensorType)]
    return op_name(e), *tensors, tuple((name, _plain(value)) for name, value in (e.attrs or {}).items())


def _plain(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    return value if value is None or type(value) in (bool, int, float, str) else str(value)


def function_of(
    op: str, tensors: Sequence[tuple[Sequence[int], str]], attributes: Sequence[tuple[str, object]]
) -> Function:
    """The typed function of a call of an operator alone, of tensors of these shapes and types."""
    params = [Var(f"p{i}", TensorType(shape, dtype)) for i, (shape, dtype) in enumerate(tensors)]
    module = infer_type.run(IRModule.from_expr(Function(params, call(op, *params, **dict(attributes)))))
    made = module["main"]
    assert isinstance(made, Function)
    return made
