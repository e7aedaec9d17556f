"""Convolutions, fully connected layers and batch normalisation: weights, biases, factors per channel or one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.values import Value
from compassc.layers.families.linear.reference import groups_of
from compassc.quantizer.job import Job, NotQuantised, scale_of
from compassc.quantizer.numbers import Factor, Levels, common_shift, extremes, factor, levels, quantised_biases
from compassc.quantizer.rounding import adaptive, mean_error
from compassc.quantizer.rules import rule
from compassc.quantizer.rules._rectify import fused, parameters, rectified_output
from compassc.quantizer.statistics import Moments, Record
from compassc.quantizer.strategies import parse

ALWAYS_PER_CHANNEL = ("DepthwiseConv",)
WIDE_WEIGHTS = {"BatchNorm": 16}
"""Types whose weights have so many bits at least: a channel has one alone."""


class Linear(NamedTuple):
    """Weights in the order of output channels first, as integers, with what follows from them."""

    values: Array
    levels: Levels
    factor: Factor

    @property
    def is_one(self) -> bool:
        return np.ndim(self.levels.scale) == 0


def ranges(job: Job, weights: Array) -> tuple[Array, Array]:
    """The range of each output channel's weights, by the strategy for weights."""
    low, high = extremes(weights)
    text = job.settings.weight_strategy
    if text == "extrema" or weights[0].size < 2:
        return low, high
    strategy, bits = parse(text), job.settings.weight_bits
    for i, row in enumerate(weights.reshape(len(weights), -1)):
        low[i], high[i] = strategy.range(
            Record.of(row.astype(np.float32)), bits, job.settings.weight_mode != "asymmetric"
        )
    return low, high


def linear_levels(job: Job, weights: Array, scale_in: np.generic, out: Tensor, groups: int) -> tuple[Levels, Factor]:
    """Scales of weights (one, or per channel) and the factors of their sums, as the settings say."""
    settings, layer = job.settings, job.layer
    bits = max(settings.weight_bits, WIDE_WEIGHTS.get(layer.type, 0))
    each = settings.per_channel or layer.type in ALWAYS_PER_CHANNEL
    low, high = ranges(job, weights)
    least, most = float(np.min(low)), float(np.max(high))

    def ratio(scale: Array) -> Array:
        return scale_of(out) / (np.float32(scale_in) * np.asarray(scale, np.float32))

    if each or groups > 1:
        many = len(weights) if each else groups
        return common_shift(low, high, many, settings.weight_mode, bits, ratio, settings.factor_bits)
    found = levels(least, most, settings.weight_mode, bits, True)
    return found, factor(ratio(found.scale), settings.factor_bits)


def described(linear: Linear, biases_scale: Array) -> tuple[dict[str, Value], dict[str, Array]]:
    """Attributes and constants that tell of factors and scales: numbers, or constants per channel."""
    if linear.is_one:
        return {
            **linear.factor.attributes(),
            "weights_scale": float(linear.levels.scale),
            "weights_zp": int(linear.levels.zero),
            "biases_scale": float(biases_scale),
            "biases_zp": 0,
        }, {}
    return {}, {
        **linear.factor.constants(),
        "weights_scale": linear.levels.scale.astype(np.float32),
        "weights_zp": linear.levels.zero.astype(np.int32),
        "biases_scale": np.asarray(biases_scale, np.float32),
        "biases_zp": np.zeros(1, np.int64),
    }


def typed(values: Array, dtype: str) -> Array:
    return values.astype(numpy_dtype(dtype))


def quantised(job: Job, weights: Array, groups: int, rounded: bool = True) -> tuple[Layer, Linear]:
    """The layer of weights [O, ...] and biases [O], and the weights as integers."""
    layer, settings, source = job.layer, job.settings, job.input
    method = fused(layer)
    out = rectified_output(job, method)
    scale_in = scale_of(source)
    found, made = linear_levels(job, weights, scale_in, out, groups)
    values = found.of(weights)
    biases = layer.constants.get("biases", np.zeros(len(weights), np.float32)).reshape(-1)
    if rounded and job.moments is not None:
        _check_moments(layer, job.moments, weights)
        if settings.rounding == "adaptive" and job.moments.products is not None:
            values = adaptive(weights, values, found, job.moments)
        if job.correct:
            biases = biases + mean_error(weights, values, found, job.moments)
    linear = Linear(values, found, made)
    scale = scale_in * np.asarray(found.scale, np.float32)
    absorbed = values.reshape(len(values), -1).sum(1) * source.scalar_zero
    whole = quantised_biases(biases, scale, settings.bias_bits, absorbed, settings.bias_effective_bits)
    attributes, constants = described(linear, scale)
    more, slopes = parameters(layer, method, out)
    kind = "int32" if settings.bias_bits <= 32 else "int64"
    constants |= {"weights": typed(values, found.dtype), "biases": typed(whole, kind), **slopes}
    return job.made(out, {**attributes, **more}, constants), linear


def _check_moments(layer: Layer, moments: Moments, weights: Array) -> None:
    """CompassError for moments of other inputs than those of the weights."""
    groups, size = moments.mean.shape
    if not groups or len(weights) % groups or weights[0].size != size:
        raise CompassError(
            f"the statistics of '{layer.name}' are of {groups} x {size} inputs, which its weights "
            f"{list(weights.shape)} do not have",
            code="calibration-data",
            help="calibrate this graph",
        )


@rule("Convolution", "DepthwiseConv", "Convolution3D")
def convolution(job: Job) -> Layer:
    weights = job.layer.constant("weights")
    groups = groups_of(job.layer)
    return quantised(job, weights, groups)[0]


@rule("FullyConnected")
def fully_connected(job: Job) -> Layer:
    return quantised(job, job.layer.constant("weights"), 1)[0]


@rule("ConvTranspose", "ConvTranspose3D")
def transposed_convolution(job: Job) -> Layer:
    """Groups have the same leading axis; their channels count one behind the other."""
    weights, groups = job.layer.constant("weights"), job.layer.integer("group", 1)
    if groups == 1:
        return quantised(job, weights, 1)[0]
    inner, own = weights.shape[-1] // groups, len(weights)
    apart = np.concatenate([weights[..., g * inner : (g + 1) * inner] for g in range(groups)])
    tiled = np.concatenate([weights] * groups)
    made, linear = quantised(job, tiled, groups, rounded=False)
    if not linear.is_one and np.any(linear.levels.scale[:own] != linear.levels.scale[-own:]):
        raise NotQuantised("the groups of its channels differ in their scales")
    # the sums that the input's zero point adds are of a group's own filters alone
    absorbed = linear.levels.of(apart).reshape(len(apart), -1).sum(1) * job.input.scalar_zero
    scale = scale_of(job.input) * np.asarray(linear.levels.scale, np.float32)
    biases = job.layer.constants.get("biases", np.zeros(len(apart), np.float32)).reshape(-1)
    settings = job.settings
    whole = quantised_biases(biases, scale, settings.bias_bits, absorbed, settings.bias_effective_bits)
    constants = dict(made.constants)
    constants |= {"weights": constants["weights"][:own], "biases": typed(whole, constants["biases"].dtype.name)}
    for key in ("weights_scale", "weights_zp"):
        if key in constants:
            constants[key] = constants[key][:own]
    return replace(made, constants=constants)


@rule("BatchNorm")
def batch_norm(job: Job) -> Layer:
    return quantised(job, job.layer.constant("weights").reshape(-1), 1, rounded=False)[0]


@rule("BiasAdd")
def bias_add(job: Job) -> Layer:
    """Biases in the scale of the input; weights are 1."""
    settings, source = job.settings, job.input
    out = job.output(True)
    biases = job.layer.constant("biases").reshape(-1)
    scale = scale_of(source)
    whole = quantised_biases(biases, scale, settings.bias_bits, source.scalar_zero, settings.bias_effective_bits)
    attributes = {**factor(scale_of(out) / scale, settings.factor_bits).attributes(), "biases_scale": float(scale),
                  "biases_zp": 0}  # fmt: skip
    kind = "int32" if settings.bias_bits <= 32 else "int64"
    return job.made(out, attributes, {"biases": typed(whole, kind)}, without=("weights",))
