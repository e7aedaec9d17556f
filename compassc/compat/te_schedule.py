"""What programs ask of schedules of stages: bounds by axis, graphs of operations, ways to where stages are computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from compass_core.errors import UsageError

from ..ir import IRModule, PrimFunc
from ..ir.iter_vars import IterVar, Range
from ..te.analyzer import Analyzer
from ..te.bounds import Bounds, infer_bounds
from ..te.lowering import schedule_ops
from ..te.schedule import Schedule
from ..te.schedule.relations import leaf_extents
from ..te.schedule.stage import Fuse, Singleton, Split, Stage
from ..te.tensor import Operation, Tensor, post_order
from . import nodes


class AxisBounds(dict[IterVar, Range]):
    """The range of each axis of each stage that computes, of its loops and of the threads that these are. `found`: what
    `ScheduleOps` needs."""

    def __init__(self, found: Bounds) -> None:
        super().__init__()
        self.found = found


def InferBound(sch: Schedule) -> AxisBounds:
    """The range of each axis. LowerError where one is not known."""
    plain = sch.normalize() if any(s.inlined for s in sch.stages) else sch
    made, simplify = AxisBounds(infer_bounds(plain)), Analyzer().simplify
    for stage, regions in made.found.regions.items():
        extents = leaf_extents(stage, {axis: region.extent for axis, region in regions.items()})
        for axis, extent in extents.items():
            region = regions.get(axis)
            least = 0 if region is None else simplify(region.min)
            made[axis] = Range.from_min_extent(least, simplify(extent))
            note = stage.annotations.get(axis)
            if note is not None and note.thread is not None:
                made[note.thread] = made[axis]
    return made


def ScheduleOps(schedule: Schedule, bounds: AxisBounds, debug_keep_trivial_loop: bool = False) -> IRModule:
    """The loop nest of a schedule with its bounds, as a module of plain loops."""
    made = schedule_ops(schedule, bounds.found)
    _nests.append((made, schedule, bounds))
    return made


_nests: deque[tuple[IRModule, Schedule, AxisBounds]] = deque(maxlen=16)
"""What loop nests were made of."""


def SchedulePostProcToPrimFunc(arg_list: Sequence[Any], body: IRModule, extern_buffer_map: object = None) -> PrimFunc:
    """The function of a loop nest that `ScheduleOps` made, with these parameters. UsageError for another one."""
    found = next(((s, bounds) for made, s, bounds in _nests if made is body), None)
    if found is None:
        raise UsageError("this is no loop nest of ScheduleOps", code="input", help="give what it made, as it was")
    return schedule_ops(found[0], found[1].found, arg_list).entry_func


def schedule_to_module(sch: Schedule, args: Sequence[Any], name: str = "main", binds: object = None) -> IRModule:
    """The loop nest of a schedule with these parameters, as a module of plain loops. UsageError for bound buffers."""
    if binds:
        raise UsageError(
            "schedule_to_module takes no bound buffers", code="input", help="tvm.lower(..., binds=...) does"
        )
    plain = sch.normalize()
    return schedule_ops(plain, infer_bounds(plain), args, name)


def CreateReadGraph(ops: Sequence[Operation]) -> dict[Operation, list[Tensor]]:
    """The tensors that each operation reads which some need, each once."""
    return {op: list(dict.fromkeys(op.input_tensors)) for op in post_order(ops)}


def PostDFSOrder(outputs: Sequence[Operation], read_graph: Mapping[Operation, Sequence[Tensor]]) -> list[Operation]:
    """The operations of a graph, each behind those that it reads."""
    return [op for op in post_order(outputs) if op in read_graph]


def CreateAttachPath(sch: Schedule) -> dict[Operation, list[IterVar]]:
    """The loops around the place of each stage, innermost first."""
    return {stage.op: _path(stage) for stage in sch.stages}


def _path(stage: Stage) -> list[IterVar]:
    if stage.attached is None:
        return []
    parent, axis = stage.attached
    leaves = parent.leaf_iter_vars
    return [*leaves[leaves.index(axis) :: -1], *_path(parent)]


def VerifyCompactBuffer(stmt: Any) -> bool:
    """Whether no buffer stands for a part of another one: none does here."""
    return True


def __getattr__(name: str) -> Any:
    if name != "Buffer":
        raise AttributeError(name)
    return nodes.TYPES[name]


__all__ = [
    "CreateAttachPath",
    "CreateReadGraph",
    "Fuse",
    "InferBound",
    "PostDFSOrder",
    "ScheduleOps",
    "Singleton",
    "Split",
]
__all__ += ["SchedulePostProcToPrimFunc", "VerifyCompactBuffer"]
