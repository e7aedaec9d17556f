"""Images sampled at given coordinates."""

from __future__ import annotations

from compassc.layers.declare import Attribute, layer_type
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
        Attribute("scale_value", "ints", "multipliers of columns and rows", form="quantised"),
        Attribute("shift_value", "ints", "shifts of columns and rows", form="quantised"),
    ),
    float=grid_sample,
    quantised=quantised_grid_sample,
)
layer_type(
    "AffineGrid",
    summary="The grid of an affine map.",
    use="rare",
    refused="AffineGrid is not supported: there is no kernel for it",
)
