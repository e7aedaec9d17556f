"""How scale and zero point of a quantised layer's outputs are chosen, by layer type."""

from __future__ import annotations

from enum import Enum

from compassc.layers.declare import Fusion, LayerType


class Quantisation(Enum):
    """How scale and zero point of a quantised layer's outputs are chosen."""

    OWN = "its values: each output has a scale and zero point of its own"
    AS_INPUT = "the input: the same numbers in the same steps"
    SHARED = "its inputs and outputs together: all of them have one scale and zero point"
    FIXED = "the function: its values lie in a range that is known"
    NONE = "nothing: its outputs are numbers as they are, such as indices and truth values"


LIMITS = {
    **dict.fromkeys("Softmax Hardmax Sigmoid".split(), (0.0, 1.0)),
    **dict.fromkeys("Tanh Softsign Erf Sine Cosine".split(), (-1.0, 1.0)),
}
"""The smallest and largest value of functions of which they are known."""
_TABLE = {
    **dict.fromkeys(LIMITS, Quantisation.FIXED),
    **dict.fromkeys("Concat Where Select".split(), Quantisation.SHARED),
    **dict.fromkeys(
        "TopK Sort ReverseSequence Repeat Compress Filter MaxPoolingWithArgMax MaxUnpool UpsampleByIndex".split(),
        Quantisation.AS_INPUT,
    ),
    **dict.fromkeys(
        "ArgMinMax Shape IsNaN IsInf Logical Bitwise BitShift Quantize Cast ConstantOfShape OneHot".split(),
        Quantisation.NONE,
    ),
}


def quantised_as(declared: LayerType) -> Quantisation:
    """How scale and zero point of the outputs are chosen; layers that only move elements keep those of the input."""
    moved = Quantisation.AS_INPUT if declared.fusion is Fusion.INJECTIVE else Quantisation.OWN
    return _TABLE.get(declared.name, moved)
