"""Pictures in other sizes, and samples of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compassc.importers.declare import Constant
from compassc.importers.onnx.operators.interpolation import nearest_of, resized_axes, weights_of
from compassc.importers.values import Refused
from compassc.relay.frontend.terms import Expressions, Term, operator
from compassc.relay.ops.convolution import SPACE

METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}
COORDINATES = ("half_pixel", "align_corners", "asymmetric")


@operator("Resize")
def resize(
    b: Expressions, x: Term, roi: Constant | None = None, scales: Constant | None = None, sizes: Constant | None = None, *,
    mode: str = "nearest", coordinate_transformation_mode: str = "half_pixel", nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75, exclude_outside: int = 0, extrapolation_value: float = 0.0, antialias: int = 0,
    axes: Sequence[int] | None = None, keep_aspect_ratio_policy: str = "stretch",
) -> Term:  # fmt: skip
    """Pictures by their operator, whatever else along one axis after the other."""
    mode = "linear" if mode == "bilinear" else mode
    changed = resized_axes(x, roi, scales, sizes, axes, coordinate_transformation_mode, keep_aspect_ratio_policy)
    if not changed:
        return x
    rank = x.rank - 2
    whole = all(abs(a.size * a.factor - a.result) < 1e-4 for a in changed.values())
    if rank in SPACE and min(changed) > 1 and whole and not antialias and coordinate_transformation_mode in COORDINATES:
        size = [changed[a].result if a in changed else x.shape[a] for a in range(2, x.rank)]
        return b.call(
            f"image.resize{rank}d", x, size=size, layout="NC" + SPACE[rank], method=METHODS[mode],
            coordinate_transformation_mode=coordinate_transformation_mode,
            rounding_method=nearest_mode if mode == "nearest" else "", cubic_alpha=cubic_coeff_a, cubic_exclude=exclude_outside,
        )  # fmt: skip
    cubic = {"coefficient": cubic_coeff_a, "exclude_outside": bool(exclude_outside), "antialias": bool(antialias)}
    for axis, spec in changed.items():
        if mode == "nearest" and not spec.crops:
            x = b.call("take", x, nearest_of(spec, nearest_mode), axis=axis)
            continue
        b.room(spec.result * spec.size)
        matrix, beyond = weights_of(spec, mode, nearest_mode, cubic, extrapolation_value)
        order = [a for a in range(x.rank) if a != axis] + [axis]
        made = b.call("nn.dense", b.transpose(x, order), matrix.astype(x.dtype))
        x = b.transpose(b.call("add", made, beyond.astype(x.dtype)) if beyond.any() else made, list(np.argsort(order)))
    return x


SAMPLED = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest", "cubic": "bicubic", "bicubic": "bicubic"}


@operator("GridSample", since=16)
def grid_sample(
    b: Expressions, x: Term, grid: Term, *, mode: str = "linear", padding_mode: str = "zeros", align_corners: int = 0
) -> Term:
    space = x.rank - 2
    if space not in (2, 3):
        raise Refused(f"pictures of {space} axes have no expression")
    order = [0, x.rank - 1, *range(1, x.rank - 1)]
    layout = "NC" + SPACE[space]
    return b.call(
        "image.grid_sample", x, b.transpose(grid, order), method=SAMPLED[mode], layout=layout, padding_mode=padding_mode,
        align_corners=bool(align_corners),
    )  # fmt: skip
