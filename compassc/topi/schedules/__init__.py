"""Default schedules: what to do with the loops of any operator, for each kind of target, by a few named numbers.

All kinds put element-wise stages into what reads them. Then the outermost loop of each output is shared out (TECs of an NPU,
threads of the host, the grid of a CUDA device), stages of a row are computed inside of it where that computes nothing
twice, and the innermost loop becomes vectors: the last axis, or the reduction where all that is read lies along it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from compass_core import switches
from compassc import services, te
from compassc.targets import Target
from compassc.te.errors import LowerError, ScheduleError
from compassc.te.schedule import Schedule
from compassc.te.tensor import PlaceholderOp, Tensor, post_order
from compassc.topi.schedules.cuda import on_grid, plain, rows_in_blocks, tiles
from compassc.topi.schedules.host import on_threads
from compassc.topi.schedules.knobs import Knobs
from compassc.topi.schedules.moves import interpolated, moved, moved_out
from compassc.topi.schedules.npu import copied, product_tiles, shared_out, sums_of_products
from compassc.topi.schedules.phases import phases
from compassc.topi.schedules.reductions import reductions
from compassc.topi.schedules.rows import streamed
from compassc.topi.schedules.windows import windows

__all__ = ["Knobs", "inputs_of", "schedule"]


def schedule(outs: Any, target: Any = None, knobs: Knobs | None = None, **named: Any) -> Schedule:
    """A schedule of the operators that give `outs`: without knobs, that which is best on record for these sizes, if there is
    one (`compassc.tuning`). `named`: knobs by name. LowerError where the target has no program for
    any schedule that is known: intermediate tensors that do not fit its memory."""
    outputs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    chosen = Target.of(target)
    if knobs is None and not named and (found := _on_record(outputs, chosen)) is not None:
        return found
    return _first(outputs, chosen, replace(knobs or Knobs(), **named))[0]


def implementation_of(outs: Sequence[Tensor], target: object) -> str:
    """What the default schedule of operators for a target is called, or why there is none."""
    try:
        return _first(outs, Target.of(target), Knobs())[1]
    except LowerError as error:
        return f"none: {error.message}"


def _first(outputs: Sequence[Tensor], target: Target, knobs: Knobs) -> tuple[Schedule, str]:
    """The first schedule that the target has a program for, and its name."""
    args = [*inputs_of(outputs), *outputs]
    first: LowerError | None = None
    for attempt in IMPLEMENTATIONS.get(target.kind.name, GRIDS if "gpu" in target.kind.keys else (plain,)):
        made = te.create_schedule(list(outputs))
        try:
            attempt(made, target, knobs)
            te.lower(made, args, target=target)
        except (LowerError, ScheduleError) as error:
            first = first or (error if isinstance(error, LowerError) else None)
            continue
        return made, attempt.__name__
    assert first is not None, "a schedule without steps is legal"
    raise first


def _on_record(outputs: Sequence[Tensor], target: Target) -> Schedule | None:
    """The schedule that is best on record, if there is one."""
    found: Schedule | None = services.best_schedule(outputs, target.mcpu) if target.kind.name == "compass" else None
    return found


def inputs_of(outputs: Sequence[Tensor]) -> list[Tensor]:
    """The tensors that outputs are computed of, in order of appearance."""
    return [op.output(0) for op in post_order([t.op for t in outputs]) if isinstance(op, PlaceholderOp)]


GRIDS = (tiles, rows_in_blocks, on_grid, plain)
IMPLEMENTATIONS: dict[str, tuple[Callable[[Schedule, Target, Knobs], None], ...]] = {
    "compass": (
        copied,
        phases,
        product_tiles,
        sums_of_products,
        windows,
        streamed,
        reductions,
        interpolated,
        moved,
        moved_out,
        shared_out,
        plain,
    ),
    "llvm": (on_threads, plain),
    "c": (on_threads, plain),
    "cuda": GRIDS,
}
"""The schedules for each kind of target, the best first: one that does not apply, or has no program, is left for the next."""
KINDS = {"compass": switches.TARGET.default, "llvm": "llvm", "c": "c", "cuda": "cuda"}
"""A target of each kind."""
