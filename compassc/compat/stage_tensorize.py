"""What programs ask of loops that an intrinsic stands for: which parts of tensors it works on, and whether it computes the same."""

from __future__ import annotations

from collections.abc import Mapping

from compass_core.errors import UsageError
from compass_runtime.packed import register_func
from compassc.ir.exprs import Expr, Var
from compassc.ir.iter_vars import IterVar, Range
from compassc.ir.operators import binary
from compassc.ir.tensor_exprs import reads
from compassc.ir.visit import substitute
from compassc.te.analyzer import Analyzer
from compassc.te.bounds import Interval, full, infer_bounds, interval, union
from compassc.te.opaque import TensorIntrin
from compassc.te.schedule.stage import Stage
from compassc.te.tensor import Tensor, tensor_of
from compassc.te.tensorised import Tensorised

from .stage_bounds import ByNeed, by_axes
from .stage_statements import nest_of


class Regions(dict[object, object]):
    """A map whose items have places."""

    packed_object = True
    """Functions by name take it."""

    def items(self) -> list[tuple[object, object]]:  # type: ignore[override]
        return list(super().items())


def _place(stage: Stage) -> int:
    """The place of the loop that an intrinsic stands for. UsageError where there is none."""
    for place, leaf in enumerate(stage.leaf_iter_vars):
        if stage.intrinsic_of(leaf) is not None:
            return place
    raise UsageError(f"no loop of '{stage.label}' is tensorized", code="input", help="s[t].tensorize(axis, intrinsic)")


def infer_tensorize_region(stage: Stage, dom_map: object) -> list[Regions]:
    """The ranges of the axes that an intrinsic works on, and those of each tensor that it reads, by the loops outside."""
    inference = ByNeed(stage.schedule, infer_bounds(stage.schedule, ByNeed))
    found, place = inference.found, _place(stage)
    intervals: dict[Var, Interval] = {}
    for leaf in stage.leaf_iter_vars[place:]:
        var = found.loops[stage][leaf]
        if isinstance(var, Var):
            intervals[var] = full(found.extents[stage][leaf])
    named, simplify = by_axes(found), Analyzer().simplify

    def range_of(span: Interval) -> Range:
        region = union([span], inference.facts(stage))
        return Range.from_min_extent(*(simplify(substitute(e, named)) for e in (region.min, region.extent)))

    spans: dict[Var, Interval] = {}
    axes, inputs = Regions(), Regions()
    for axis, (low, high) in inference.counted(stage, intervals).items():
        first = found.regions[stage][axis].min
        spans[axis.as_expr()] = span = binary("add", low, first), binary("add", high, first)
        axes[axis] = range_of(span)
    for read in (r for e in stage.body for r in reads(e)):
        inputs.setdefault(tensor_of(read), [range_of(interval(i, spans.get)) for i in read.indices])
    return [axes, inputs]


def match_tensorize_body(
    stage: Stage, out_dom: Mapping[IterVar, Range], in_dom: Mapping[Tensor, object], intrin: TensorIntrin
) -> tuple[Expr, ...]:
    """What the loops compute, by the axes of the intrinsic: what this computes. LowerError where it is something else."""
    place = _place(stage)
    if stage.intrinsic_of(stage.leaf_iter_vars[place]) is not intrin:
        raise UsageError(
            f"'{intrin.name}' is not the intrinsic of '{stage.label}'", code="input", help="tensorize with it"
        )
    nest = nest_of(stage)
    return Tensorised(nest, place, nest.loops).intrin.op.body


register_func("test.op.InferTensorizeRegion", infer_tensorize_region, override=True)
register_func("test.op.MatchTensorizeBody", match_tensorize_body, override=True)
