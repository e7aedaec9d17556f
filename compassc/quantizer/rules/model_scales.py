"""Scales that a model brings along: `Quantize` and `DeQuantize` layers in a graph that is quantised."""

from __future__ import annotations

from dataclasses import replace

from compassc.graph import Layer
from compassc.quantizer.job import Job, NotQuantised, scale_of
from compassc.quantizer.numbers import factor
from compassc.quantizer.rules import rule

SAME = 1e-6
"""How far scales are apart, relative to them, that are the same but for float32."""


@rule("Quantize")
def quantize(job: Job) -> Layer:
    """From the scale that the input has to the given one."""
    own, source = job.layer.output, job.input
    if isinstance(own.scale, tuple):
        raise NotQuantised("its scales are per channel")
    out = replace(own, limits=own.limits or (own.low, own.high))
    near = abs(source.scalar_scale / out.scalar_scale - 1) < SAME
    if near and (source.dtype, source.zero) == (out.dtype, out.zero):
        return nothing(job)
    made = job.made(
        out,
        {
            **factor(scale_of(out) / scale_of(source), max(out.integer.bits, source.integer.bits)).attributes(),
            "to_dtype": out.dtype, "clip_mode": "SATURATION", "ignore_scale_zp": False,
        },
        without=("quantize_scale", "quantize_zp", "round_mode"),
    )  # fmt: skip
    return replace(made, type="Cast")


@rule("DeQuantize")
def dequantize(job: Job) -> Layer:
    """The integers stay what they are."""
    if isinstance(job.input.scale, tuple):
        raise NotQuantised("its scales are per channel")
    return nothing(job)


def nothing(job: Job) -> Layer:
    """A layer that hands its input on."""
    made = job.made(job.as_input(), without=("quantize_scale", "quantize_zp", "round_mode"))
    return replace(made, type="NoOp")
