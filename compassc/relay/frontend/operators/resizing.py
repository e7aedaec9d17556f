"""Pictures in other sizes, and samples of them."""

from __future__ import annotations

from compassc.importers.declare import Constant
from compassc.importers.onnx.interpolation import Resizing, by_axes, is_whole
from compassc.importers.values import Refused
from compassc.relay.frontend.terms import Expressions, Term, operator
from compassc.relay.ops.convolution import SPACE

METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}
COORDINATES = ("half_pixel", "align_corners", "asymmetric")


@operator("Resize")
def resize(
    b: Expressions, x: Term, roi: Constant | None = None, scales: Constant | None = None, sizes: Constant | None = None, *,
    asked: Resizing,
) -> Term:  # fmt: skip
    """Pictures by their operator, whatever else along one axis after the other."""
    changed, rank, places = asked.changed(x, roi, scales, sizes), x.rank - 2, asked.coordinate_transformation_mode
    if not changed:
        return x
    if rank not in SPACE or min(changed) < 2 or not is_whole(changed) or asked.antialias or places not in COORDINATES:
        return by_axes(b, x, changed, asked)
    return b.call(
        f"image.resize{rank}d",
        x,
        size=[changed[a].result if a in changed else x.shape[a] for a in range(2, x.rank)],
        layout="NC" + SPACE[rank],
        method=METHODS[asked.kind],
        coordinate_transformation_mode=places,
        rounding_method=asked.nearest_mode if asked.kind == "nearest" else "",
        cubic_alpha=asked.cubic_coeff_a,
        cubic_exclude=asked.exclude_outside,
    )


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
