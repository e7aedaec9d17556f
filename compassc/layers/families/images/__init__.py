"""Colours of camera images, and the extremes of windows plus weights."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, layer_type
from compassc.layers.families.images.reference import extreme, quantised_extreme, rgb_to_yuv, yuv_to_rgb
from compassc.layers.windows import ATTRIBUTES_2D
from compassc.operators.patterns import PatternKind

COLOURS = (
    Attribute("coefficient", "floats", "offsets before and behind the matrix, three each, and the matrix by rows"),
    Attribute("coefficient_shift", "int", "fraction bits of the matrix; integers must tell them", "0 for floats"),
    Attribute("coefficient_dtype", "word", "the type of the numbers in `coefficient`", "any"),
    Attribute("bits", "int", "bits of a colour", "8", told=lambda layer: 8),
    Attribute("conversion", "word", "the name of the standard the coefficients are from", "any"),
    Attribute("shape", "ints", "of the result, which the tensors tell as well", "from the tensors"),
    Attribute("format", "word", "I420: the planes Y, U and V, the last two of half the size", "I420"),
)
layer_type(
    "YuvToRgb",
    summary="Planar YUV images as RGB.",
    use="sometimes",
    attributes=COLOURS,
    float=yuv_to_rgb,
    quantised=yuv_to_rgb,
    notes="Rows and columns between those of U and V are interpolated. With fraction bits half a step is added before "
    "the result is rounded.",
)
layer_type(
    "RgbToYuv",
    summary="RGB images as planar YUV.",
    use="sometimes",
    attributes=COLOURS,
    float=rgb_to_yuv,
    quantised=rgb_to_yuv,
    notes="U and V are those of the pixel at the top left of each two by two. The offsets before the matrix are a row "
    "that is multiplied from the left. With fraction bits half a step is added.",
)
layer_type(
    "Preprocess",
    summary="Images as the network wants them.",
    use="rare",
    refused="the format leaves open what it computes; preprocess images before the network, or by layers of their own",
)
for _name, _summary in (
    ("Dilation", "The maximum of a window plus weights."),
    ("Erosion", "The minimum of a window minus weights, which are turned by 180 degrees."),
):
    layer_type(
        _name,
        summary=_summary,
        use="rare",
        pattern=PatternKind.ANCHOR,
        attributes=(
            *ATTRIBUTES_2D,
            Attribute("scale_value", "ints", "multipliers of the result, the image and the weights", form="quantised"),
            Attribute("shift_value", "int", "the result's shift", form="quantised"),
        ),
        constants=(Constant("weights", "[C,KH,KW,1]", "what is added under the window"),),
        float=extreme,
        quantised=quantised_extreme,
    )
