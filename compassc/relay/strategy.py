"""Strategies: several ways to compute an operator, of which one is chosen by condition and priority.

A program registers one with `relay.op.register_strategy(name, f)`, where `f(attrs, inputs, out_type, target)` gives an `OpStrategy`.
Builds ask it for each call of the operator: of the implementations whose conditions hold the one with the highest level computes it,
and where it is the most complex call of its kernel its schedule is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar

from compass_core.dataclass import dataclass
from compassc.ir.errors import ExpressionError
from compassc.ir.exprs import Expr as Condition
from compassc.relay.attributes import Attrs
from compassc.relay.operators import FIRST_LEVEL, Op, get
from compassc.relay.tuned import records
from compassc.relay.types import Type
from compassc.targets import Target
from compassc.te.schedule.schedule import Schedule
from compassc.te.tensor import Tensor

if TYPE_CHECKING:
    from typing_extensions import Self

Compute = Callable[[Attrs | None, Sequence[Tensor], Type], Sequence[Tensor]]
"""What computes an operator: of its attributes, its inputs and the type of the result."""
MakeSchedule = Callable[[Attrs | None, Sequence[Tensor], Target], Schedule]
"""What schedules a kernel: of the attributes, the results and the target."""


class SpecializedCondition:
    """A context in which implementations are added for some sizes: those of which all of `clauses` hold."""

    current: ClassVar[SpecializedCondition | None] = None

    def __init__(self, clauses: object) -> None:
        self.clauses: Sequence[object] = clauses if isinstance(clauses, (list, tuple)) else [clauses]
        self._outer: SpecializedCondition | None = None

    def __enter__(self) -> Self:
        self._outer, SpecializedCondition.current = SpecializedCondition.current, self
        return self

    def __exit__(self, *failure: object) -> None:
        SpecializedCondition.current = self._outer

    def holds(self) -> bool:
        """Whether all clauses are known to be true: of open extents none is."""
        return all(map(_is_true, self.clauses))


def _is_true(clause: object) -> bool:
    if isinstance(clause, Condition):
        clause = getattr(clause, "value", False)
    return bool(clause)


@dataclass(frozen=True)
class OpImplementation:
    """A way to compute an operator; of several that apply the one of the highest `plevel` is taken."""

    compute: Compute
    schedule: MakeSchedule | None
    name: str = "default"
    plevel: int = FIRST_LEVEL


@dataclass
class OpSpecialization:
    """The implementations that apply where a condition holds, None for always."""

    condition: SpecializedCondition | None
    implementations: list[OpImplementation] = field(default_factory=list)


class OpStrategy:
    """The ways to compute an operator."""

    def __init__(self) -> None:
        self.specializations: list[OpSpecialization] = []

    def add_implementation(
        self, compute: Compute, schedule: MakeSchedule | None, name: str = "default", plevel: int = FIRST_LEVEL
    ) -> None:
        """Add a way, for the sizes of the `SpecializedCondition` around."""
        condition = SpecializedCondition.current
        found = next((s for s in self.specializations if s.condition is condition), None)
        if found is None:
            found = OpSpecialization(condition)
            self.specializations.append(found)
        found.implementations.append(OpImplementation(compute, schedule, name, plevel))


class NoImplementation(ExpressionError, RuntimeError):
    """An operator that no implementation computes for a target."""


def get_valid_implementations(
    op: Op, attrs: Attrs | None, inputs: Sequence[Tensor], out_type: Type, target: Target | str
) -> list[OpImplementation]:
    """The implementations whose conditions hold. NoImplementation for operators without a strategy."""
    strategy: Callable[..., OpStrategy] | None = op.get_attr("FTVMStrategy")
    if strategy is None:
        raise NoImplementation(f"{op.name} has no strategy", "register one with tvm.relay.op.register_strategy")
    made = strategy(attrs, inputs, out_type, Target.of(target))
    valid = [s for s in made.specializations if s.condition is None or s.condition.holds()]
    return [i for s in valid for i in s.implementations]


def select_implementation(
    op: Op,
    attrs: Attrs | None,
    inputs: Sequence[Tensor],
    out_type: Type,
    target: Target | str,
    use_autotvm: bool = True,
) -> tuple[OpImplementation, list[Tensor]]:
    """The implementation of the highest level, of equals the first, and what it computes. NoImplementation where there is none.
    With `use_autotvm`, of those that are on record where builds look (`compassc.relay.tuned`) the one of least cost goes before."""
    chosen_target, asked = Target.of(target), records() if use_autotvm else None
    valid = get_valid_implementations(op, attrs, inputs, out_type, chosen_target)
    if not valid:
        raise NoImplementation(f"No valid {op.name} implementations for {target}", "add one without a condition")
    first = max(valid, key=lambda i: i.plevel)
    with chosen_target:
        if asked is None:
            return first, list(first.compute(attrs, inputs, out_type))
        made = [(i, list(i.compute(attrs, inputs, out_type))) for i in valid]
    costs = [asked.cost(op.name, outputs, chosen_target) for _, outputs in made]
    known = [(cost, place) for place, cost in enumerate(costs) if cost is not None]
    return made[min(known)[1] if known else valid.index(first)]


# ---------------------------------------------------------------------------------------------- operators with one expression


def register_schedule(op_name: str, schedule: MakeSchedule | None, level: int = FIRST_LEVEL) -> None:
    """Have builds compute an operator by its registered compute, and schedule it so; None for the default schedule. NoImplementation
    for an operator without a compute."""
    op = get(op_name)
    compute = op.compute
    if compute is None:
        raise NoImplementation(
            f"FTVMCompute is not registered for op {op_name}",
            f"call relay.op.register_compute('{op_name}', ...) before",
        )
    known: Compute = compute

    def strategy(attrs: Attrs | None, inputs: Sequence[Tensor], out_type: Type, target: Target) -> OpStrategy:
        made = OpStrategy()
        made.add_implementation(known, schedule, f"{op_name.rpartition('.')[2]}.generic")
        return made

    op.set_attr("FTVMStrategy", strategy, level)


def register_injective_schedule(op_name: str, level: int = FIRST_LEVEL) -> None:
    """Have builds compute an operator by its registered compute, with the default schedule."""
    register_schedule(op_name, None, level)


register_broadcast_schedule = register_reduce_schedule = register_injective_schedule


# ---------------------------------------------------------------------------------------------------------------- adapters


def wrap_topi_schedule(topi_schedule: Callable[[Sequence[Tensor]], Schedule]) -> MakeSchedule:
    """A schedule of a function of the results alone."""

    def schedule(attrs: Attrs | None, outs: Sequence[Tensor], target: Target) -> Schedule:
        with target:
            return topi_schedule(outs)

    return schedule


def wrap_compute_conv2d(
    topi_compute: Callable[..., Tensor], need_data_layout: bool = False, need_kernel_layout: bool = False
) -> Compute:
    """The compute of a function `(data, kernel, strides, padding, dilation, [layouts,] out_dtype)`."""

    def compute(attrs: Attrs | None, inputs: Sequence[Tensor], out_type: Type) -> Sequence[Tensor]:
        assert attrs is not None
        args: list[object] = [*inputs[:2], attrs["strides"], attrs["padding"], attrs["dilation"]]
        args += [attrs["data_layout"]] if need_data_layout else []
        args += [attrs["kernel_layout"]] if need_kernel_layout else []
        return [topi_compute(*args, attrs["out_dtype"] or str(inputs[0].dtype))]

    return compute


def wrap_compute_dense(topi_compute: Callable[..., Tensor]) -> Compute:
    """The compute of a function `(data, weight, bias, out_dtype)`."""

    def compute(attrs: Attrs | None, inputs: Sequence[Tensor], out_type: Type) -> Sequence[Tensor]:
        assert attrs is not None
        return [topi_compute(inputs[0], inputs[1], None, attrs["out_dtype"] or str(inputs[0].dtype))]

    return compute
