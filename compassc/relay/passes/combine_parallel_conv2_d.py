"""Combine convolutions of the same data into one of all their channels.

Before: a typed module.
After: `min_num_branches` or more calls of `nn.conv2d` on the same data, equal but for their channels and without groups, are
one, whose result is sliced.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from compassc.relay.builders import build
from compassc.relay.expr import Call, Expr
from compassc.relay.module import IRModule
from compassc.relay.passes._parallel import combine, sizes, slices

NAME = "CombineParallelConv2D"
LEVEL = 4
REQUIRED = ("InferType",)


def run(module: IRModule, min_num_branches: int = 3) -> IRModule:
    return combine(module, "nn.conv2d", min_num_branches, _key, _one)


def _key(e: Call) -> Hashable | None:
    assert e.attrs is not None
    if e.attrs["groups"] != 1:
        return None
    layout = e.attrs["kernel_layout"]
    weight = sizes(e.args[1])
    return (e.attrs.changed(channels=None), weight[layout.index("H")], weight[layout.index("W")])


def _one(calls: Sequence[Call], data: Expr, weights: Sequence[Expr]) -> Sequence[Expr]:
    attrs = calls[0].attrs
    assert attrs is not None
    axis = attrs["kernel_layout"].index("O")
    channels = [sizes(c.args[1])[axis] for c in calls]
    weight = build("concatenate", list(weights), axis=axis)
    made = Call(calls[0].op, [data, weight], attrs.changed(channels=sum(channels)))
    return slices(made, (attrs["out_layout"] or attrs["data_layout"]).index("C"), channels)
