"""Pad within convolutions and pools instead of before them.

Before: a typed module.
After: no `nn.pad` with a constant stands directly before a convolution (of zeros), an average pool (of zeros, which it counts
then) or a maximum pool (of the least number), unless it pads batches or channels: the operator pads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compassc.relay.expr import Call, Constant, Expr
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes._functions import rewrite_functions

NAME = "FoldExplicitPadding"
LEVEL = 0
REQUIRED = ("InferType",)
_CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")
_MEANS = ("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d")
_MAXIMA = ("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")


def run(module: IRModule) -> IRModule:
    return rewrite_functions(module, _folded)


def _folded(before: Expr, after: Expr) -> Expr:
    name = op_name(after)
    if name not in (*_CONVOLUTIONS, *_MEANS, *_MAXIMA) or not isinstance(after, Call) or after.attrs is None:
        return after
    pad = after.args[0]
    if op_name(pad) != "nn.pad" or not isinstance(pad, Call) or pad.attrs is None:
        return after
    if pad.attrs["pad_mode"] != "constant" or not _is_value(name, pad.args[1]):
        return after
    layout = str(after.attrs["data_layout"] if name in _CONVOLUTIONS else after.attrs["layout"])
    added = _spatial(pad.attrs["pad_width"], layout)
    own = _both_sides(after.attrs["padding"], len(layout) - 2)
    if added is None or own is None or after.attrs.get("ceil_mode"):
        return after
    if name in _MAXIMA and not _meets_data(after, added, own):
        return after
    changes: dict[str, object] = {"padding": [a + b for a, b in zip(own, added)]}
    if name in _MEANS:
        if not after.attrs["count_include_pad"] and any(own):
            return after
        changes["count_include_pad"] = True
    return Call(after.op, [pad.args[0], *after.args[1:]], after.attrs.changed(**changes), (), after.span)


def _is_value(name: str, e: Expr) -> bool:
    """Whether a constant is what an operator pads with."""
    if not isinstance(e, Constant) or e.array.size != 1:
        return False
    if name not in _MAXIMA:
        return not e.array.any()
    kind = e.array.dtype
    return bool(e.array.item() == (np.finfo(kind).min if kind.kind == "f" else np.iinfo(kind).min))


def _meets_data(pool: Call, added: Sequence[int], own: Sequence[int]) -> bool:
    """Whether no window of a pool lies in what is padded: what such a window gives is the pool's own affair."""
    assert pool.attrs is not None
    sizes = [*pool.attrs["pool_size"]]
    widest = [a + b for a, b in zip(added, own)]
    return set(pool.attrs["dilation"]) == {1} and all(w < k for w, k in zip(widest, sizes * 2))


def _spatial(widths: Sequence[Sequence[int]], layout: str) -> list[int] | None:
    """The widths before all spatial axes, then those behind them; None where others are padded, or something is cut off."""
    if len(layout) != len(widths) or not layout.isalpha() or any(w < 0 for pair in widths for w in pair):
        return None
    if any(any(pair) for axis, pair in zip(layout, widths) if axis in "NC"):
        return None
    order = [widths[layout.index(axis)] for axis in "DHW" if axis in layout]
    return [before for before, _ in order] + [behind for _, behind in order]


def _both_sides(padding: Sequence[int] | int, rank: int) -> list[int] | None:
    """The padding of an operator, before all axes and then behind them."""
    given = [padding] if isinstance(padding, int) else list(padding)
    if len(given) == 1:
        return given * (2 * rank)
    if len(given) == rank:
        return given * 2
    return given if len(given) == 2 * rank else None
