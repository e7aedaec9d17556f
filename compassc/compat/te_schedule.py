"""What programs ask of schedules of stages: bounds by axis, graphs of operations, ways to where stages are computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compass_core.errors import UsageError

from ..analysis.structure import variables
from ..ir import IRModule, PrimFunc
from ..ir.dtypes import INT32
from ..ir.exprs import Expr, IntImm
from ..ir.iter_vars import IterVar, Range
from ..ir.node import Statements
from ..ir.tensor_exprs import ProducerLoad, reads
from ..ir.visit import substitute
from ..te.analyzer import Analyzer
from ..te.bounds import Bounds, infer_bounds
from ..te.buffers import View
from ..te.lowering import schedule_ops
from ..te.opaque import ScanOp, body_of
from ..te.schedule import Schedule
from ..te.schedule.relations import Fuse, Singleton, Split, leaf_extents
from ..te.schedule.stage import Stage
from ..te.tensor import ComputeOp, Operation, Tensor, post_order, tensor_of
from . import nodes, stage_tensorize
from .stage_bounds import ByNeed, by_axes
from .stage_functions import function_of
from .stage_statements import ANYWHERE, statements


class AxisBounds(dict[IterVar, Range]):
    """The range of each axis of each stage that computes, of its loops and of the threads that these are. `schedule`, `found`:
    what `ScheduleOps` needs, the schedule without inlined stages and its bounds."""

    packed_object = True
    """Functions by name take it."""

    def __init__(self, schedule: Schedule, found: Bounds) -> None:
        super().__init__()
        self.schedule, self.found = schedule, found


def InferBound(sch: Schedule) -> AxisBounds:
    """The range of each axis. LowerError where one is not known."""
    plain = sch.normalize() if any(s.inlined for s in sch.stages) else sch
    made = AxisBounds(plain, infer_bounds(plain, ByNeed))
    named, analyzer = by_axes(made.found), Analyzer()

    def simplify(e: Expr) -> Expr:
        return analyzer.simplify(substitute(e, named))

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


def ScheduleOps(schedule: Schedule, bounds: AxisBounds, debug_keep_trivial_loop: bool = False) -> Statements:
    """The statements of a schedule with its bounds, on tensors that have no memory yet. `debug_keep_trivial_loop`: loops of one turn
    are there, too. LowerError where threads reduce together."""
    return statements(bounds.schedule, bounds.found, debug_keep_trivial_loop)


def SchedulePostProcToPrimFunc(
    arg_list: Sequence[object], body: object, extern_buffer_map: Mapping[Tensor, View] | None = None
) -> PrimFunc:
    """The function of such statements, with these parameters. LowerError for tensors that have no memory."""
    return function_of(arg_list, body_of(body, "SchedulePostProcToPrimFunc"), extern_buffer_map or {})


def schedule_to_module(sch: Schedule, args: Sequence[object], name: str = "main", binds: object = None) -> IRModule:
    """The loop nest of a schedule with these parameters, as a module of plain loops. UsageError for bound buffers."""
    if binds:
        raise UsageError(
            "schedule_to_module takes no bound buffers", code="input", help="tvm.lower(..., binds=...) does"
        )
    plain = sch.normalize()
    return schedule_ops(plain, infer_bounds(plain), args, name, ANYWHERE)


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
        scans = (s.origin_op for s in stage.schedule.stages if isinstance(s.origin_op, ScanOp))
        return [scan.scan_axis for scan in scans if stage.origin_op in ScanGetBody(scan)]
    parent, axis = stage.attached
    leaves = parent.leaf_iter_vars
    return [*leaves[leaves.index(axis) :: -1], *_path(parent)]


def ScanGetBody(scan_op: ScanOp) -> list[Operation]:
    """The operations between the states of a scan and its updates: what is computed anew for each row."""
    states = {t.op for t in scan_op.state_placeholder}
    depends = set(states)
    body = []
    for op in post_order([t.op for t in scan_op.update]):
        if op not in states and depends & {t.op for t in op.input_tensors}:
            depends.add(op)
            body.append(op)
    return body


def ScanFixPointAnalysis(scan_op: ScanOp) -> dict[IterVar, IntImm]:
    """Of each axis of a scan but the first one whether it is carried unchanged through a step: 1 where each row depends on
    elements of the rows before at the same place along it alone, else 0."""
    carried = {}
    for dim, axis in enumerate(scan_op.spatial_axis_, 1):
        carried[axis] = IntImm(INT32, int(_is_carried(scan_op, dim)))
    return carried


def _is_carried(scan: ScanOp, dim: int) -> bool:
    """Whether what leads from the states to the updates keeps a dimension: going back from the updates, each tensor is read
    along one dimension of its own by the axis alone."""
    states = {t.op for t in scan.state_placeholder}
    between = set(ScanGetBody(scan))
    place: dict[Operation, int] = {}
    for t in scan.update:
        if place.setdefault(t.op, dim) != dim:
            return False
    for op in reversed(post_order([t.op for t in scan.update])):
        if op not in place or op not in between or not isinstance(op, ComputeOp):
            continue
        own = op.axis[place[op]].as_expr()
        for read in (r for e in op.body for r in reads(e)):
            source = tensor_of(read).op
            if source not in between and source not in states:
                continue
            found = [i for i, index in enumerate(read.indices) if index is own]
            others = any(own in variables(index) for i, index in enumerate(read.indices) if i not in found)
            if len(found) != 1 or others or place.setdefault(source, found[0]) != found[0]:
                return False
    return all(place.get(op, dim) == dim for op in states)


def _inline(sch: Schedule, simple: Callable[[ComputeOp], bool]) -> None:
    for stage in sch.stages:
        op = stage.origin_op
        untouched = stage.attach_type == 1 and not stage.relations and not stage.annotations
        if untouched and not stage.is_output and isinstance(op, ComputeOp) and len(op.body) == 1 and simple(op):
            stage.compute_inline()


def AutoInlineElemWise(sch: Schedule) -> None:
    """Computes inline what reads each input at its own axes, where no step was taken on it."""
    _inline(sch, lambda op: not op.reduce_axis and all(_at_own_axes(op, r) for r in reads(op.body[0])))


def _at_own_axes(op: ComputeOp, read: ProducerLoad) -> bool:
    return len(read.indices) == len(op.axis) and all(i is a.as_expr() for i, a in zip(read.indices, op.axis))


def AutoInlineBroadcast(sch: Schedule) -> None:
    """Computes inline what is tagged `broadcast`, where no step was taken on it."""
    _inline(sch, lambda op: not op.reduce_axis and op.tag == "broadcast")


def AutoInlineInjective(sch: Schedule) -> None:
    """Computes inline what reduces over nothing, where no step was taken on it."""
    _inline(sch, lambda op: not op.reduce_axis)


def VerifyCompactBuffer(stmt: object) -> bool:
    """Whether no buffer stands for a part of another one: none does here."""
    return True


def __getattr__(name: str) -> nodes.NodeType:
    if name != "Buffer":
        raise AttributeError(name)
    return nodes.TYPES[name]


__all__ = [
    "AutoInlineBroadcast",
    "AutoInlineElemWise",
    "AutoInlineInjective",
    "CreateAttachPath",
    "CreateReadGraph",
    "Fuse",
    "InferBound",
    "PostDFSOrder",
    "ScanFixPointAnalysis",
    "ScanGetBody",
    "ScheduleOps",
    "Singleton",
    "Split",
]
FOUND_BY_NAME = (stage_tensorize.infer_tensorize_region, stage_tensorize.match_tensorize_body)
"""Functions that programs get with `get_global_func`."""
__all__ += ["SchedulePostProcToPrimFunc", "VerifyCompactBuffer"]
