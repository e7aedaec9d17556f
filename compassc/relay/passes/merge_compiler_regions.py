"""Make one of regions of the same compiler.

Before: a typed module with annotations (`AnnotateTarget`).
After: a region whose value goes into one of its compiler is a part of it, unless what lies between both is elsewhere; annotations
within regions are gone.
"""

from __future__ import annotations

from compassc.relay.expr import Call, Expr, Function
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes._annotated import BEGIN, END, Region, RegionSet, is_closed, sources
from compassc.relay.passes._functions import on_functions
from compassc.relay.visit import depth_first, rewrite

NAME = "MergeCompilerRegions"
LEVEL = 0
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    return on_functions(module, lambda f, _: _function(f))


def _function(f: Function) -> Function:
    regions = RegionSet(f)
    kept_apart: dict[Region, set[Region]] = {}
    before = {r: _before(r, regions) for r in regions}  # regions change while they are joined
    for region in depth_first(list(before), lambda r: before[r]):
        _join(region, regions, kept_apart)

    def one(old: Expr, new: Expr) -> Expr:
        if op_name(old) == BEGIN and isinstance(old, Call) and isinstance(new, Call):
            end = new.args[0]
            if op_name(end) == END and regions.region_of(old) is regions.region_of(old.args[0]):
                assert isinstance(end, Call)
                return end.args[0]
        return new

    made = rewrite(f, one, is_closed)
    assert isinstance(made, Function), "a function stays one"
    return made


def _before(region: Region, regions: RegionSet) -> list[Region]:
    """The regions that one takes values of, in order."""
    ends = [e for b in region.begins if isinstance(b, Call) for e in sources(b.args[0])]
    return list(dict.fromkeys(r for e in ends if (r := regions.region_of(e)) is not None))


def _join(region: Region, regions: RegionSet, kept_apart: dict[Region, set[Region]]) -> None:
    """Take those before a region into it that may be. `kept_apart`: those that a region must not be one with, by region: what
    lies before others that are before it, or before values outside that it takes."""
    outside = [b.args[0] for b in region.begins if isinstance(b, Call) and regions.region_of(b.args[0]) is None]
    around = {regions.region_of(e) for value in outside for e in sources(value)}
    parents = _before(region, regions)
    apart = {r.find() for p in parents for r in kept_apart.get(p, ())}
    for parent in parents:
        if parent.compiler != region.compiler or parent in around:
            apart.add(parent)
        elif parent not in apart:
            parent.join(region)
    kept_apart[region] = apart
