"""The words that attributes of ONNX's operators may be, which its checker does not look at."""

from __future__ import annotations

from collections.abc import Mapping

from compassc.importers.values import Refused

_ORDERS = ("DCR", "CRD")
_LOSSES = ("none", "sum", "mean")
_UPDATES = ("none", "add", "mul", "max", "min")
WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "approximate": {"Gelu": ("none", "tanh")},
    "auto_pad": {"": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "")},
    "coordinate_transformation_mode": {
        "Resize": (
            "half_pixel",
            "half_pixel_symmetric",
            "pytorch_half_pixel",
            "align_corners",
            "asymmetric",
            "tf_half_pixel_for_nn",
            "tf_crop_and_resize",
        ),
        "RoiAlign": ("half_pixel", "output_half_pixel"),
    },
    "direction": {"BitShift": ("LEFT", "RIGHT")},
    "keep_aspect_ratio_policy": {"Resize": ("stretch", "not_larger", "not_smaller")},
    "mode": {
        "DepthToSpace": _ORDERS,
        "GridSample": ("linear", "nearest", "cubic", "bilinear", "bicubic"),
        "Pad": ("constant", "reflect", "edge", "wrap"),
        "Resize": ("nearest", "linear", "cubic"),
        "RoiAlign": ("avg", "max"),
        "SpaceToDepth": _ORDERS,
        "TensorScatter": ("linear", "circular"),
        "TfIdfVectorizer": ("TF", "IDF", "TFIDF"),
    },
    "nearest_mode": {"Resize": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")},
    "padding_mode": {"GridSample": ("zeros", "border", "reflection")},
    "reduction": {
        "NegativeLogLikelihoodLoss": _LOSSES,
        "ScatterElements": _UPDATES,
        "ScatterND": _UPDATES,
        "SoftmaxCrossEntropyLoss": _LOSSES,
    },
}
"""By attribute and operator, "" for any: in all opsets."""


def check_words(operator: str, attributes: Mapping[str, object]) -> None:
    """Refused for an attribute that is a word without a meaning."""
    for name, value in attributes.items():
        listed = WORDS.get(name, {})
        expected = listed.get(operator) or listed.get("")
        if expected and value not in expected:
            words = ", ".join(filter(None, expected))
            raise Refused(f"its attribute '{name}' is '{value}', expected one of {words}")
