"""Dynamic quantisation: 8-bit numbers whose scale and zero point are found at run time, and what computes with them."""

from __future__ import annotations

import numpy as np

from compassc.importers.building import Building
from compassc.importers.onnx.common.contributed import MICROSOFT
from compassc.importers.onnx.declare import operator, refuse
from compassc.importers.onnx.operators.elementwise import arithmetic, cast, combined, extreme, unary
from compassc.importers.onnx.operators.reduce import reduced
from compassc.importers.values import Value

HIGHEST = 255.0
ADVICE = "give the float model that it was made from, and quantise that: --calibrate"


def _number(value: float) -> Value:
    return Value.of(np.asarray(value, np.float32))


@operator("DynamicQuantizeLinear", since=11)
def dynamic_quantize(b: Building, x: Value) -> list[Value]:
    """uint8 over the range of the values, which 0 belongs to; its scale and its zero point, of layers of floats."""
    b.say_once(f"scales are found at run time, in floats, as the model says. For integers throughout {ADVICE}")
    axes = list(range(x.rank))
    low, high = (
        extreme(b, b.squeeze(reduced(b, x, method, axes), axes), _number(0), method) for method in ("MIN", "MAX")
    )
    scale = combined(b, [arithmetic(b, high, low, "Sub"), _number(HIGHEST)], "Div", np.float32)
    share = combined(b, [low, scale], "Div", np.float32)
    zero = unary(b, _limited(b, arithmetic(b, _number(0), share, "Sub")), "Round")
    level = arithmetic(b, unary(b, combined(b, [x, scale], "Div", np.float32), "Round"), zero, "Add")
    return [cast(b, _limited(b, level), np.uint8), scale, cast(b, zero, np.uint8)]


def _limited(b: Building, x: Value) -> Value:
    return extreme(b, extreme(b, x, _number(0), "MAX"), _number(HIGHEST), "MIN")


refuse(
    f"it is dynamically quantised: {ADVICE}",
    "DynamicQuantizeLSTM",
    "QAttention",
    "QEmbedLayerNormalization",
    domain=MICROSOFT,
)
