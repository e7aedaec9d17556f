"""Normalisation over axes: layer, instance, group and RMS norm, mean and variance, norms of vectors, local responses."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, DeclaredType, declare_table
from compassc.layers.families.normalise.bodies import norm_body
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
from compassc.operators.patterns import PatternKind

EPSILON = Attribute("epsilon", "measure", "added to the variance", "1e-5", form="float")
AXES = Attribute("axis", "ints", "the axes that are normalised over", "-1")
AFFINE = tuple(
    Constant(name, "the axes'", meaning, optional=True)
    for name, meaning in (("weights", "factors"), ("biases", "addends"))
)
TABLE = (
    DeclaredType(
        "LayerNorm",
        "Mean 0 and variance 1 over axes, then factors and addends.",
        "common",
        (layer_norm, quantised_layer_norm),
        body=norm_body,
        attributes=(AXES, EPSILON),
        outputs="y[, mean, 1/deviation]",
        constants=AFFINE,
        same_shape=True,
    ),
    DeclaredType(
        "InstanceNorm",
        "Mean 0 and variance 1 over each image's channel, then factors and addends.",
        "common",
        (layer_norm, quantised_layer_norm),
        body=norm_body,
        attributes=(AXES, EPSILON),
        constants=AFFINE,
        same_shape=True,
    ),
    DeclaredType(
        "GroupNorm",
        "Mean 0 and variance 1 over groups of channels, then factors and addends.",
        "common",
        (group_norm, quantised_group_norm),
        (Attribute("axis", "int", "the axis of the channels", "-1"), Attribute("group", "count", "groups"), EPSILON),
        constants=AFFINE,
        same_shape=True,
    ),
    DeclaredType(
        "RMSNorm",
        "Divided by the root of the mean square, then factors.",
        "common",
        (rms_norm, quantised_rms_norm),
        body=norm_body,
        attributes=(AXES, EPSILON),
        constants=AFFINE,
        same_shape=True,
    ),
    DeclaredType(
        "MVN", "Mean 0 and variance 1 over axes.", "sometimes", (mvn, quantised_mvn), (AXES, EPSILON), same_shape=True
    ),
    DeclaredType(
        "Moments",
        "Mean and variance over axes.",
        "rare",
        (moments, quantised_moments),
        (AXES, Attribute("keepdims", "flag", "axes stay as 1", "true")),
        outputs="mean, variance",
    ),
    DeclaredType(
        "Normalization",
        "Divided by the L1 or L2 norm over axes.",
        "sometimes",
        (normalization, quantised_normalization),
        (
            Attribute("method", "word", "L1 or L2"),
            AXES,
            Attribute("epsilon", "measure", "the smallest norm", "1e-12", form="float"),
        ),
        same_shape=True,
    ),
    DeclaredType(
        "LRN",
        "Divided by a power of the neighbours' mean square.",
        "sometimes",
        (local_response, quantised_local_response),
        (
            Attribute("method", "word", "ACROSS_CHANNELS or WITHIN_CHANNEL", "ACROSS_CHANNELS"),
            Attribute("size", "int", "neighbours"),
            Attribute("alpha", "float", "the factor", "1e-4"),
            Attribute("beta", "float", "the power", "0.75"),
            Attribute("bias", "float", "an addend", "1"),
        ),
        constants=(Constant("lut", "[2^n]", "powers", form="quantised"),),
        same_shape=True,
        pattern=PatternKind.OPAQUE,
    ),
    DeclaredType(
        "NormalizedMoments",
        "Mean and variance from sums.",
        "rare",
        (normalised_moments, quantised_normalised_moments),
        (
            Attribute("counts", "float", "how many elements were summed up", form="float"),
            *(
                Attribute(f"{p}_{n}", "ints", f"the {n.split('_')[0]} of the {d}", form="quantised")
                for p, d in (("mean", "mean"), ("var", "variance"))
                for n in ("scale_value", "shift_value")
            ),
        ),
        inputs="sum, sum of squares, shift",
        outputs="mean, variance",
        constants=(Constant("lut", "[2^n]", "squares of the mean by the first input", form="quantised"),),
        pattern=PatternKind.ELEMENTWISE,
    ),
)
declare_table(TABLE, PatternKind.REDUCTION)
