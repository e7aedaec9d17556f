"""Images in another size."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Fusion, layer_type
from compassc.layers.families.resize.reference import METHODS, MODES, NEAREST_MODES, resize

layer_type(
    "Resize",
    "Interp",
    summary="An image in another size.",
    use="common",
    fusion=Fusion.OPAQUE,
    inputs="x[, sizes]",
    attributes=(
        Attribute("method", "word", ", ".join(METHODS), "BILINEAR"),
        Attribute("mode", "word", "how coordinates map: " + ", ".join(MODES), "HALF_PIXEL"),
        Attribute("ratio_x", "float", "output width over input width", "from the shapes"),
        Attribute("ratio_y", "float", "output height over input height", "from the shapes"),
        Attribute("nearest_mode", "word", ", ".join(NEAREST_MODES), "ROUND_PREFER_FLOOR"),
        Attribute("antialias", "flag", "a wider filter where the image gets smaller", "false"),
    ),
    float=resize,
    quantised=resize,
)
