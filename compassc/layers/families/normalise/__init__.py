"""Normalisation over axes: layer, instance, group and RMS norm, mean and variance, norms of vectors, local responses."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, Fusion, layer_type
from compassc.layers.families.normalise.reference import (
    group_norm,
    layer_norm,
    local_response,
    moments,
    mvn,
    normalised_moments,
    normalization,
    quantised_group_norm,
    quantised_layer_norm,
    quantised_local_response,
    quantised_moments,
    quantised_mvn,
    quantised_normalised_moments,
    quantised_normalization,
    quantised_rms_norm,
    rms_norm,
)

EPSILON = Attribute("epsilon", "float", "added to the variance", "1e-5", form="float")
AXES = Attribute("axis", "ints", "the axes that are normalised over", "-1")
AFFINE = (Constant("weights", "the axes'", "factors"), Constant("biases", "the axes'", "addends", optional=True))
layer_type(
    "LayerNorm",
    same_shape=True,
    summary="Mean 0 and variance 1 over axes, then factors and addends.",
    use="common",
    fusion=Fusion.REDUCTION,
    outputs="y[, mean, 1/deviation]",
    attributes=(AXES, EPSILON),
    constants=AFFINE,
    float=layer_norm,
    quantised=quantised_layer_norm,
)
layer_type(
    "InstanceNorm",
    same_shape=True,
    summary="Mean 0 and variance 1 over each image's channel, then factors and addends.",
    use="common",
    fusion=Fusion.REDUCTION,
    attributes=(AXES, EPSILON),
    constants=AFFINE,
    float=layer_norm,
    quantised=quantised_layer_norm,
)
layer_type(
    "GroupNorm",
    same_shape=True,
    summary="Mean 0 and variance 1 over groups of channels, then factors and addends.",
    use="common",
    fusion=Fusion.REDUCTION,
    constants=AFFINE,
    attributes=(
        Attribute("axis", "int", "the axis of the channels", "-1"),
        Attribute("group", "int", "groups"),
        EPSILON,
    ),
    float=group_norm,
    quantised=quantised_group_norm,
)
layer_type(
    "RMSNorm",
    same_shape=True,
    summary="Divided by the root of the mean square, then factors.",
    use="common",
    fusion=Fusion.REDUCTION,
    attributes=(AXES, EPSILON),
    constants=AFFINE,
    float=rms_norm,
    quantised=quantised_rms_norm,
)
layer_type(
    "MVN",
    same_shape=True,
    summary="Mean 0 and variance 1 over axes.",
    use="sometimes",
    fusion=Fusion.REDUCTION,
    attributes=(AXES, EPSILON),
    float=mvn,
    quantised=quantised_mvn,
)
layer_type(
    "Moments",
    summary="Mean and variance over axes.",
    use="rare",
    fusion=Fusion.REDUCTION,
    outputs="mean, variance",
    attributes=(AXES, Attribute("keepdims", "flag", "axes stay as 1", "true")),
    float=moments,
    quantised=quantised_moments,
)
layer_type(
    "Normalization",
    same_shape=True,
    summary="Divided by the L1 or L2 norm over axes.",
    use="sometimes",
    fusion=Fusion.REDUCTION,
    attributes=(
        Attribute("method", "word", "L1 or L2"),
        AXES,
        Attribute("epsilon", "float", "the smallest norm", "1e-12", form="float"),
    ),
    float=normalization,
    quantised=quantised_normalization,
)
layer_type(
    "LRN",
    same_shape=True,
    summary="Divided by a power of the neighbours' mean square.",
    use="sometimes",
    attributes=(
        Attribute("method", "word", "ACROSS_CHANNELS or WITHIN_CHANNEL", "ACROSS_CHANNELS"),
        Attribute("size", "int", "neighbours"),
        Attribute("alpha", "float", "the factor", "1e-4"),
        Attribute("beta", "float", "the power", "0.75"),
        Attribute("bias", "float", "an addend", "1"),
    ),
    constants=(Constant("lut", "[2^n]", "powers", form="quantised"),),
    float=local_response,
    quantised=quantised_local_response,
)
layer_type(
    "NormalizedMoments",
    summary="Mean and variance from sums.",
    use="rare",
    fusion=Fusion.ELEMENTWISE,
    inputs="sum, sum of squares, shift",
    outputs="mean, variance",
    attributes=(
        Attribute("counts", "float", "how many elements were summed up", form="float"),
        *(
            Attribute(f"{p}_{n}", "ints", f"the {n.split('_')[0]} of the {d}", form="quantised")
            for p, d in (("mean", "mean"), ("var", "variance"))
            for n in ("scale_value", "shift_value")
        ),
    ),
    constants=(Constant("lut", "[2^n]", "squares of the mean by the first input", form="quantised"),),
    float=normalised_moments,
    quantised=quantised_normalised_moments,
)
