"""Rectifiers, fused to the end of a layer and alone: the sign of the output, and the integers of their parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.arithmetic import quantise
from compassc.quantizer.job import Job, NotQuantised

SLOPE_SHIFT = 12
"""Of the slopes of a PRELU."""


def fused(layer: Layer) -> str:
    """The rectifier at the end of a layer."""
    return layer.word("with_activation", "NONE")


def is_signed(layer: Layer, method: str) -> bool:
    """Whether results can be negative."""
    if method == "CLIP":
        return layer.number("clip_min") < 0
    return method not in ("RELU", "RELU6")


def rectified_output(job: Job, method: str, signed: bool | None = None) -> Tensor:
    """The output of a layer that ends in a rectifier. The limits of a CLIP are limits of the range."""
    layer = job.layer
    signed = is_signed(layer, method) if signed is None else signed
    if method != "CLIP":
        return job.output(signed)
    low, high = job.range()
    least, most = layer.number("clip_min"), layer.number("clip_max")
    if least > most:
        raise NotQuantised(f"'clip_min' is {least} and 'clip_max' {most}")
    return job.output(signed, limits=(float(np.clip(low, least, most)), float(np.clip(high, least, most))))


def parameters(layer: Layer, method: str, out: Tensor) -> tuple[dict[str, Value], dict[str, Array]]:
    """Attributes and constants of a rectifier in the steps of the output."""
    if method == "CLIP":
        return _limits(layer, out), {}
    if method == "LEAKYRELU":
        slope = round(layer.number("negative_slope_value") * (1 << out.integer.bits))
        return {"negative_slope_value": slope, "negative_slope_type": _narrowest(slope)}, {}
    if method == "PRELU":
        slopes = quantise(layer.constant("negative_slope"), 1 << SLOPE_SHIFT, 0, -32768, 32767).astype(np.int16)
        return {"negative_slope_shift": SLOPE_SHIFT}, {"negative_slope": slopes}
    return {}, {}


def _limits(layer: Layer, out: Tensor) -> dict[str, Value]:
    """With 8 bits more than the output has where it has 8."""
    fine = (256.0, 0) if out.integer.bits <= 8 else (1.0, out.scalar_zero)
    made: dict[str, Value] = {}
    for key in ("clip_min", "clip_max"):
        value = np.float32(layer.number(key))
        scale = np.float32(fine[0]) * np.float32(out.scalar_scale)
        made[key] = int(quantise(np.asarray(value), scale, fine[1], -(2**31), 2**31 - 1))
    return made


def _narrowest(value: int) -> str:
    names: Mapping[str, tuple[int, int]] = {
        "uint8": (0, 255), "uint16": (0, 65535), "int8": (-128, 127), "int16": (-32768, 32767),
    }  # fmt: skip
    for name, (low, high) in names.items():
        if low <= value <= high:
            return name
    raise NotQuantised(f"the slope {value} of negative values does not fit 16 bits")
