"""Samples of element-wise layers."""

from __future__ import annotations

from collections.abc import Mapping

from compass_core.arrays import Array
from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.families.activation.reference import TABLED
from compassc.layers.samples.draw import Draw, activation, bits_of, float_activation, layer_of, sample

METHODS = (
    "SIGMOID TANH GELU SILU HARDSWISH HARDSIGMOID MISH ELU SELU CELU SOFTPLUS SOFTSIGN SHRINK THRESHOLDEDRELU".split()
)


@sample("Activation", *TABLED)
def _tabled(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    given: dict[str, Value] = {"method": draw.choice(METHODS)} if kind == "Activation" else {}
    if not x.is_integer:
        return layer_of(draw, kind, [x], draw.tensor(x.shape, x.dtype), **given)
    if kind in ("Sine", "Cosine") and bits_of(x) > 8:
        given |= {"scale_value": 200, "shift_value": 8}
    y = draw.tensor(x.shape, draw.choice(("int8", "uint8", "int16")))
    table = draw.array(y.dtype, 256 if bits_of(x) <= 8 else 512)
    return layer_of(draw, kind, [x], y, {"lut": table}, **given)


@sample("RELU", "RELU6", "Clip", "LeakyRELU", "PRELU")
def _rectifier(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    channels = x.shape[-1] if x.shape else 1
    if not x.is_integer:
        slope = {"negative_slope": draw.array(x.dtype, channels)} if kind == "PRELU" else None
        y = draw.tensor(x.shape, x.dtype)
        return layer_of(draw, kind, [x], y, slope, clip_min=-1.0, clip_max=2.0, negative_slope_value=0.125)
    slope = {"negative_slope": draw.array("int8", channels)} if kind == "PRELU" else None
    given = {"clip_min": -100, "clip_max": 90, "negative_slope_value": 26, **draw.rescaling(7)}
    return layer_of(draw, kind, [x], draw.requantised(x), slope, **given)


@sample("Abs", "Negative", "Sign")
def _sign(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    given = draw.rescaling(7) if kind == "Abs" and x.is_integer else {}
    return layer_of(draw, kind, [x], draw.requantised(x), **given)


@sample("Eltwise", "Add", "Sub", "Mul")
def _eltwise(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    method = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL"}.get(kind) or draw.choice(("ADD", "SUB", "MUL", "MAX", "MIN"))
    shape = [1 if draw.integer(0, 9) == 0 else n for n in x.shape]
    other = draw.other(x, shape)
    if not x.is_integer:
        return layer_of(draw, kind, [x, other], draw.tensor(x.shape, x.dtype), method=method, **float_activation(draw))
    bits = bits_of(x)
    if method == "MUL":
        given: Mapping[str, Value] = draw.rescaling(14 if bits <= 8 else 22)
    else:
        top = 32767 if bits <= 8 else 255
        listed = [draw.integer(128, 255), draw.integer(top // 2, top), draw.integer(top // 4, top)]
        given = {"scale_value": listed, "shift_value": 22 if bits <= 8 else 16}
    return layer_of(draw, kind, [x, other], draw.requantised(x), method=method, **given, **activation(draw))


@sample("SquaredDifference", "Div", "Mod", "DivMod", "BitShift")
def _two_operands(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    other = draw.other(x)
    given: Mapping[str, Value] = {"direction": "LEFT"} if kind == "BitShift" else {}
    constants: dict[str, Array] = {}
    if kind == "SquaredDifference" and x.is_integer:
        given = {"scale_value": [200, 128, 120], "shift_value": [14, 7, 7]}
    if kind == "Mod" and x.is_integer:
        given = {"scale_value": [draw.integer(128, 255), draw.integer(128, 255)], "shift_value": [7, 7]}
    if kind == "Div" and x.is_integer:
        given, constants = draw.rescaling(15), {"lut": draw.array("uint16", 256)}
    y = draw.like(x) if kind == "BitShift" else draw.requantised(x)
    outputs = [y, draw.like(y)] if kind == "DivMod" else [y]
    return layer_of(draw, kind, [x, other], outputs, constants, **given)


@sample("Bitwise", "Logical")
def _logical(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    methods: tuple[str, ...] = ("AND", "OR", "XOR", "NOT")
    if kind == "Logical":
        methods += ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
    method = draw.choice(methods)
    inputs = [x] if method == "NOT" else [x, draw.other(x)]
    given = {"scale_value": [draw.integer(1, 255), draw.integer(1, 255)]} if kind == "Logical" and x.is_integer else {}
    y = draw.tensor(x.shape, "uint8", 0) if kind == "Logical" else draw.like(x)
    return layer_of(draw, kind, inputs, y, method=method, **given)


@sample("IsNaN", "IsInf")
def _special(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    return layer_of(draw, kind, [x], draw.tensor(x.shape, "uint8", 0), detect_positive=draw.choice((True, False)))


@sample("Pow")
def _power(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.is_integer:
        return layer_of(draw, kind, [x], draw.tensor(x.shape, x.dtype), exponent=draw.choice((2.0, 3.0)))
    y = draw.tensor(x.shape, draw.choice(("int8", "uint8", "int16")))
    return layer_of(draw, kind, [x], y, {"lut_log": draw.array(y.dtype, 256)}, exponent=2.0)


@sample("Cast")
def _cast(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    to = ("int8", "uint8", "int16") if x.is_integer else (x.dtype,)
    return layer_of(
        draw, kind, [x], draw.tensor(x.shape, draw.choice(to)), ignore_scale_zp=True, clip_mode="saturation"
    )


@sample("FixedPoint")
def _fixed_point(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.is_integer:
        return None
    channels = x.shape[-1] if x.shape else 1
    each = {
        "scale": draw.array("uint32", channels, low=1 << 30, high=(1 << 31) - 1),
        "shift": draw.array("int8", channels, low=31, high=40),
    }
    one: dict[str, Value] = {"scale_value": 1518500250, "scale_type": "uint32", "shift_value": 33, "shift_type": "int8"}
    per_channel = bool(draw.choice((True, False)))
    out = draw.plain(x.shape, draw.choice(("int8", "uint8", "int16")))
    given: dict[str, Value] = {
        "x_zero_point": 3,
        "y_zero_point": -2,
        "rounding": draw.choice(("UPWARD", "TWICE_UPWARD", "TWICE_TONEAREST")),
    }
    return layer_of(draw, kind, [x], out, each if per_channel else None, **given, **({} if per_channel else one))


@sample("Quantize")
def _quantise(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    return None if x.is_integer else layer_of(draw, kind, [x], draw.tensor(x.shape, draw.choice(("int8", "uint8"))))


@sample("DeQuantize")
def _dequantise(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    return layer_of(draw, kind, [x], draw.tensor(x.shape, "float32")) if x.is_integer else None


@sample("Where", "Select")
def _where(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    condition = draw.tensor(x.shape, "uint8", 0)
    y = draw.requantised(x)
    given = {"scale_value": [150, 200], "shift_value": [7, 8]} if x.is_integer else {}
    return layer_of(draw, kind, [condition, x, draw.other(x)], y, **given)


@sample("FakeQuantWithMinMaxVars", "NoOp", "Dummy")
def _plain(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    return layer_of(draw, kind, [x], draw.like(x))
