"""Images sampled at given coordinates."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, layer_type
from compassc.layers.families.sampling.affine import affine_grid
from compassc.layers.families.sampling.reference import METHODS, PADDINGS, grid_sample, quantised_grid_sample

layer_type(
    "GridSample",
    summary="An image sampled at the coordinates of a grid, -1 to 1 from border to border.",
    use="sometimes",
    inputs="x, grid",
    attributes=(
        Attribute("method", "word", ", ".join(METHODS), "BILINEAR"),
        Attribute("padding_mode", "word", "what lies outside: " + ", ".join(PADDINGS), "ZEROS"),
        Attribute("align_corners", "flag", "-1 and 1 are the centres of the outer pixels, not their borders", "false"),
        Attribute("coordinate_x_shift", "int", "fraction bits of columns", form="quantised"),
        Attribute("coordinate_y_shift", "int", "fraction bits of rows", form="quantised"),
        Attribute("coordinate_z_shift", "int", "fraction bits of the planes of volumes", "none", "quantised"),
        Attribute("scale_value", "ints", "multipliers of columns, rows and planes", form="quantised"),
        Attribute("shift_value", "ints", "shifts of columns, rows and planes", form="quantised"),
    ),
    float=grid_sample,
    quantised=quantised_grid_sample,
    notes="Images [N,H,W,C] with grids of (x, y), or volumes [N,D,H,W,C] with grids of (x, y, z).",
)
layer_type(
    "AffineGrid",
    summary="The grid of an affine map.",
    use="rare",
    inputs="maps [N,2,3] or [N,3,4], size (informative)",
    attributes=(
        Attribute("align_corners", "flag", "-1 and 1 are the centres of the outer pixels, not their borders", "false"),
        Attribute("multiplier_bits", "int", "fraction bits of the tables", form="quantised"),
        Attribute("scale_value", "int", "multiplier of the sums", form="quantised"),
        Attribute("shift_value", "int", "shift of the sums", form="quantised"),
    ),
    constants=tuple(
        Constant(f"{a}_lut", f"[{a.upper()}]", f"coordinates along {a.upper()}", optional=a == "d", form="quantised")
        for a in "whd"
    ),
    float=affine_grid,
    quantised=affine_grid,
    notes="Coordinates are x, y and, of volumes, z. 16-bit floats are computed in float32 and stored once.",
)
