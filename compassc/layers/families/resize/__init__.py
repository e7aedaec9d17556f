"""Images in another size."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, layer_type
from compassc.layers.families.resize.reference import METHODS, MODES, NEAREST_MODES, resize
from compassc.operators.patterns import PatternKind

layer_type(
    "Resize",
    "Interp",
    summary="An image in another size.",
    use="common",
    pattern=PatternKind.OPAQUE,
    inputs="x[, sizes]",
    attributes=(
        Attribute("method", "word", ", ".join(METHODS), "BILINEAR"),
        Attribute("mode", "word", "how coordinates map: " + ", ".join(MODES), "HALF_PIXEL"),
        Attribute("ratio_x", "float", "output width over input width", "from the shapes"),
        Attribute("ratio_y", "float", "output height over input height", "from the shapes"),
        Attribute("ratio_z", "float", "output planes over input planes, of volumes", "from the shapes"),
        Attribute("size", "ints", "the output's sizes, which its shape tells as well", "from the shapes"),
        Attribute("nearest_mode", "word", ", ".join(NEAREST_MODES), "ROUND_PREFER_FLOOR"),
        Attribute("antialias", "flag", "a wider filter where the image gets smaller", "false"),
        Attribute("exclude_outside", "flag", "such a filter leaves out what is outside of the image", "false"),
        Attribute("interp_shift_value", "int", "fraction bits of the weights", "13", "quantised"),
    ),
    constants=tuple(
        Constant(f"{name}_{axis}{end}", shape, doc, optional=True)
        for axis in "xy"
        for name, end, shape, doc in (
            ("weight_coefficients", "", "[windows, width]", "weights of the filter; a triangle where they are missing"),
            ("bound", "_min", "[windows]", "its first elements"),
            ("bound", "_max", "[windows]", "the elements behind its last ones"),
        )
    ),
    float=resize,
    quantised=resize,
)
