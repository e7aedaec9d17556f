"""Layers that keep the scale of what they take: movement of elements, pooling, resizing; and whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.arithmetic import approximate_factor, quantise
from compassc.layers.declare import evaluate
from compassc.layers.families.pooling.reference import area_of
from compassc.quantizer.job import Job, NotQuantised, scale_of, whole_type
from compassc.quantizer.numbers import factor, index_positions, levels, stored
from compassc.quantizer.rules import rule

MOVES = (
    "Reshape Squeeze Unsqueeze Flatten Transpose Permute Slice StridedSlice Crop Tile Repeat ReverseSequence Compress "
    "Gather GatherElements GatherND DepthToSpace SpaceToDepth BatchToSpace BatchToSpaceND SpaceToBatch BatchToDepth "
    "DataStride ChannelShuffle MaxUnpool UpsampleByIndex QueryRebatch NoOp"
)
INTERPOLATION_BITS = 13
"""Of the weights of bilinear interpolation."""


@rule(*MOVES.split())
def move(job: Job) -> Layer:
    return job.made([job.as_input(i) if _is_data(t) else job.plain(i) for i, t in enumerate(job.layer.outputs)])


def _is_data(t: Tensor) -> bool:
    return t.dtype.startswith(("float", "bfloat"))


@rule("Split", "Dummy", "Meshgrid")
def parts(job: Job) -> Layer:
    source = range(len(job.inputs)) if job.layer.type == "Dummy" else [0] * len(job.layer.outputs)
    return job.made([job.as_input(i, k) for i, k in zip(range(len(job.layer.outputs)), source, strict=False)])


@rule("TopK", "Sort", "MaxPoolingWithArgMax", "Filter")
def ordered(job: Job) -> Layer:
    """Values keep their scale, indices and counts are numbers."""
    outputs = job.layer.outputs
    values = outputs if job.layer.type == "Filter" else outputs[:1]
    made = [job.as_input(i) if _is_data(t) and t in values else job.plain(i) for i, t in enumerate(outputs)]
    return job.made(made)


@rule("Pad")
def pad(job: Job) -> Layer:
    out = job.as_input()
    if job.layer.word("mode", "CONSTANT") != "CONSTANT":
        return job.made(out)
    value = np.asarray(job.layer.number("constant_value", 0.0), np.float32)
    whole = quantise(value, out.scalar_scale, out.scalar_zero, out.low, out.high)
    off = abs((int(whole) + out.scalar_zero) / out.scalar_scale - float(value))
    if off > 1 / out.scalar_scale:
        raise NotQuantised(f"the constant {float(value)} lies outside the range of its input")
    return job.made(out, {"constant_value": int(whole)})


@rule("Pooling", "GlobalPool")
def pooling(job: Job) -> Layer:
    method, source = job.layer.word("method"), job.input
    if method == "AVG" and job.settings.rescale_means:
        out = job.output(source.integer.signed)
        return job.made(out if job.bits <= 8 else _of_exact_mean(job.layer, source, out))
    if method in ("MAX", "AVG"):
        return job.made(job.as_input())
    out = job.output(False)
    if method == "L1":
        return job.made(out, factor(scale_of(out) / scale_of(source), 16, 63).attributes())
    return _root(job, out, source)


def _of_exact_mean(layer: Layer, source: Tensor, out: Tensor) -> Tensor:
    """An output of means with the next smaller scale whose ratio to the input's the layer's multiplier of 8 bits is, for
    windows that are whole: that of another one is off by up to 1/256, which is more than integers of 16 bits are."""
    area = np.float32(max(int(area_of(layer).max(initial=1)), 1))
    ratio = scale_of(out) / scale_of(source) / area
    multiplier, shift = approximate_factor(ratio, 8)
    own = multiplier * np.exp2(-shift.astype(np.float64))
    own = own if own <= ratio else (multiplier - 1) * np.exp2(-shift.astype(np.float64))
    return replace(out, scale=float(np.float32(own * area * scale_of(source))))


def _root(job: Job, out: Tensor, source: Tensor) -> Layer:
    """The root, by a table, of sums of squares that are requantised to 16 bits."""
    scale = levels(*job.inside("squares"), "symmetric_full_range", 16, False).scale
    made = factor(scale / (scale_of(source) * scale_of(source)), 16, 63)
    at = index_positions(16, job.settings.table_bits, source.integer.bits)
    table = stored(np.sqrt(at * (np.float32(1) / np.float32(scale))), out)
    return job.made(out, made.attributes(), {"sqrt_lut": table})


@rule("Pooling3D", "FractionalPool", "AdaptivePool")
def plain_pooling(job: Job) -> Layer:
    method = job.layer.word("method")
    if method not in ("MAX", "AVG"):
        raise NotQuantised(f"its method is {method}")
    rest = [job.plain(i) for i in range(1, len(job.layer.outputs))]
    made = job.made([job.as_input(), *rest])
    if method == "MAX" or job.bits <= 8 or not job.settings.rescale_means or made.output.scalar_zero:
        return made
    scale = float(np.float32(made.output.scalar_scale * _gain(job.layer, made)))
    return replace(made, outputs=(replace(made.output, scale=scale), *rest))


FINEST = 2.0**-11
"""Of its largest value, what means of 16 bits may be off by."""


def _gain(layer: Layer, made: Layer) -> float:
    """What the means of a layer whose multipliers have 8 bits are of the true ones. NotQuantised where windows differ in it."""
    most = made.input.high * 3 // 4
    ones, integers = (_of_one_channel(given) for given in (layer, made))
    true = evaluate(ones, [np.ones(ones.input.shape, np.float32)])[0].astype(np.float64) * most
    own = evaluate(integers, [np.full(integers.input.shape, most, np.int64)])[0]
    fullest = np.unravel_index(true.argmax(), true.shape)
    gain = float(own[fullest] / true[fullest])
    if (off := float(np.abs(own - true * gain).max()) / most) > FINEST:
        raise NotQuantised(
            f"its multipliers have 8 bits, by which the means of some windows are off by {off:.1%} of others"
        )
    return gain


def _of_one_channel(layer: Layer) -> Layer:
    def one(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return replace(tensors[0], shape=(*tensors[0].shape[:-1], 1)), *tensors[1:]

    return replace(layer, inputs=one(layer.inputs), outputs=one(layer.outputs))


@rule("Resize", "Interp")
def resize(job: Job) -> Layer:
    bits = INTERPOLATION_BITS if job.layer.word("method", "BILINEAR") == "BILINEAR" else 0
    if job.layer.flag("antialias", False):
        raise NotQuantised("it smooths (antialias)")
    return job.made(job.as_input(), {"interp_shift_value": bits, "interp_shift_type": "int8"})


REDUCED = {"SUM": 1, "MEAN": 1, "VARIANCE": 2, "UNBIASED_VARIANCE": 2, "L1": 1, "L2": 2}


@rule("Reduce")
def reduce(job: Job) -> Layer:
    method, source = job.layer.word("method"), job.input
    if method in ("MIN", "MAX"):
        return job.made(job.as_input())
    if method in ("ANY", "ALL"):
        return job.made(job.plain(dtype="uint8"))
    if method not in REDUCED:
        raise NotQuantised(f"its method is {method}")
    out = job.output(method in ("SUM", "MEAN") and source.integer.signed)
    count = int(np.prod([source.shape[a] for a in job.layer.axes()]))
    if method == "L2":
        return _root(job, out, source)
    ratio = scale_of(out) / scale_of(source)
    if method in ("SUM", "MEAN"):
        own = factor(ratio / np.float32(count if method == "MEAN" else 1), job.bits)
    elif method == "L1":
        own = factor(ratio, 16, 63)
    else:
        many = count - (method == "UNBIASED_VARIANCE")
        own = factor(ratio / scale_of(source) / np.float32(max(many, 1)), 16, 63)
    return job.made(out, own.attributes())


@rule("Cumulate")
def cumulate(job: Job) -> Layer:
    if job.layer.word("method") != "SUM":
        raise NotQuantised("running products lose their precision")
    out = job.output(job.input.integer.signed, bits=job.input.integer.bits)
    return job.made(out, factor(scale_of(out) / scale_of(job.input), 15).attributes())


@rule("ArgMinMax", "Shape", "IsNaN", "IsInf", "InTopK", "Count", "NonZero", "CTCGreedyDecoder")
def numbers(job: Job) -> Layer:
    """Indices and truth values."""
    return job.made([job.plain(i) for i in range(len(job.layer.outputs))])


@rule("ZeroFraction")
def zero_fraction(job: Job) -> Layer:
    """The largest integer stands for all elements."""
    most = (1 << job.bits) - 1
    own = job.layer.output
    out = Tensor(own.name, own.shape, f"uint{8 if job.bits <= 8 else 16}", float(most), 0, (0, most))
    return job.made(out, {"output_scale": most})


@rule("Cast")
def cast(job: Job) -> Layer:
    """Of real numbers to whole ones; whole numbers, and conversions between float types, stay as they are."""
    given, made = job.layer.input, job.layer.output
    if not _is_data(given):
        raise NotQuantised("it makes real numbers of whole ones")
    if _is_data(made):
        return job.made(job.as_input(), {"to_dtype": job.input.dtype, "ignore_scale_zp": True})
    out = job.plain(dtype=whole_type(made.dtype))
    own = factor(np.float32(1) / scale_of(job.input), 16)
    more: dict[str, Value] = {
        "to_dtype": out.dtype,
        "clip_mode": "SATURATION",
        "ignore_scale_zp": job.input.scale == 1.0,
    }
    return job.made(out, {**own.attributes(), **more})


@rule("OneHot")
def one_hot(job: Job) -> Layer:
    values = job.layer.numbers("values", [0, 1])
    if any(v != int(v) for v in values):
        raise NotQuantised("its values are no whole numbers")
    low, high = min(values), max(values)
    bits = 8 if -128 <= low and high <= 255 else 16
    kind = f"int{bits}" if low < 0 else f"uint{bits}"
    return job.made(job.plain(dtype=kind), {"values": [int(v) for v in values]})
