"""Convolutions, fully connected layers, matrix products and batch normalisation."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, Fusion, layer_type
from compassc.layers.families.linear.reference import (
    BIASES,
    GROUP,
    NUM_OUTPUT,
    WEIGHTS,
    WITH_ACTIVATION,
    batch_norm,
    bias_add,
    conv_integer,
    convolution,
    fully_connected,
    gemm,
    matmul,
    matmul_integer,
    quantised_batch_norm,
    quantised_bias_add,
    quantised_convolution,
    quantised_fully_connected,
    quantised_gemm,
    quantised_matmul,
    quantised_transposed_convolution,
    transposed_convolution,
)
from compassc.layers.windows import ATTRIBUTES_2D, ATTRIBUTES_3D

layer_type(
    "Convolution",
    summary="Sums of products under a window that slides over an NHWC image.",
    use="common",
    fusion=Fusion.OUT_FUSABLE,
    attributes=(NUM_OUTPUT, GROUP, *ATTRIBUTES_2D, WITH_ACTIVATION),
    constants=(WEIGHTS, BIASES),
    float=convolution,
    quantised=quantised_convolution,
)
layer_type(
    "DepthwiseConv",
    summary="A convolution with a group per input channel.",
    use="common",
    fusion=Fusion.OUT_FUSABLE,
    attributes=(
        NUM_OUTPUT,
        GROUP,
        Attribute("multiplier", "count", "output channels per input channel", "1"),
        *ATTRIBUTES_2D,
        WITH_ACTIVATION,
    ),
    constants=(Constant("weights", "[C*multiplier,KH,KW,1]", "one filter per output channel"), BIASES),
    float=convolution,
    quantised=quantised_convolution,
)
layer_type(
    "Convolution3D",
    summary="Sums of products under a window that slides over an NDHWC volume.",
    use="sometimes",
    fusion=Fusion.OUT_FUSABLE,
    attributes=(NUM_OUTPUT, GROUP, *ATTRIBUTES_3D, WITH_ACTIVATION),
    constants=(Constant("weights", "[O,KH,KW,KD,I/group]", "the weights"), BIASES),
    float=convolution,
    quantised=quantised_convolution,
)
for _name, _attributes, _shape in (
    ("ConvTranspose", ATTRIBUTES_2D, "[O/group,KH,KW,I]"),
    ("ConvTranspose3D", ATTRIBUTES_3D, "[O/group,KH,KW,KD,I]"),
):
    layer_type(
        _name,
        summary="Each input element adds a filter to the output; the pads are cut off.",
        use="common",
        fusion=Fusion.OUT_FUSABLE,
        attributes=(
            NUM_OUTPUT,
            GROUP,
            *_attributes,
            WITH_ACTIVATION,
            Attribute("output_padding_x", "int", "columns added at the right", "0"),
            Attribute("output_padding_y", "int", "rows added at the bottom", "0"),
        ),
        constants=(Constant("weights", _shape, "the filters"), BIASES),
        float=transposed_convolution,
        quantised=quantised_transposed_convolution,
    )
layer_type(
    "FullyConnected",
    summary="x times the transposed weights, plus biases.",
    use="common",
    fusion=Fusion.OUT_FUSABLE,
    attributes=(NUM_OUTPUT, WITH_ACTIVATION),
    constants=(Constant("weights", "[O,I]", "the weights"), BIASES),
    float=fully_connected,
    quantised=quantised_fully_connected,
)
_TRANSPOSED = (
    Attribute("trans_a", "flag", "the left operand's last two axes are swapped first", "false"),
    Attribute("trans_b", "flag", "the right operand's last two axes are swapped first", "false"),
)
layer_type(
    "MatMul",
    summary="Matrix products; leading axes broadcast.",
    use="common",
    fusion=Fusion.OUT_FUSABLE,
    inputs="a, b",
    attributes=(*_TRANSPOSED, Attribute("fused_multiplier", "float", "a factor of the product", "1", form="float")),
    float=matmul,
    quantised=quantised_matmul,
)
layer_type(
    "Gemm",
    summary="alpha times the product of two matrices, plus beta times a third.",
    use="sometimes",
    fusion=Fusion.OUT_FUSABLE,
    inputs="a, b[, c]",
    attributes=(
        *_TRANSPOSED,
        Attribute("alpha", "float", "the factor of the product", "1"),
        Attribute("beta", "float", "the factor of c", "1"),
    ),
    float=gemm,
    quantised=quantised_gemm,
)
layer_type(
    "MatMulInteger",
    summary="Products of matrices of whole numbers less their zero points.",
    use="rare",
    inputs="a, b",
    fusion=Fusion.OUT_FUSABLE,
    attributes=(
        Attribute("a_zero_point", "int", "subtracted from a", "0"),
        Attribute("b_zero_point", "int", "subtracted from b", "0"),
    ),
    float=matmul_integer,
    quantised=matmul_integer,
)
layer_type(
    "ConvInteger",
    summary="A convolution of whole numbers less their zero points; the result is int32.",
    use="rare",
    fusion=Fusion.OUT_FUSABLE,
    attributes=(
        NUM_OUTPUT,
        GROUP,
        *ATTRIBUTES_2D,
        Attribute("x_zero_point", "int", "subtracted from x", "0"),
        Attribute("w_zero_point", "int", "subtracted from the weights", "0"),
    ),
    constants=(WEIGHTS, BIASES),
    float=conv_integer,
    quantised=conv_integer,
)
layer_type(
    "BatchNorm",
    summary="A factor and an addend per channel.",
    use="common",
    fusion=Fusion.BROADCAST,
    attributes=(Attribute("axis", "int", "the axis of the channels", "last"), WITH_ACTIVATION),
    constants=(Constant("weights", "[C]", "factors"), Constant("biases", "[C]", "addends")),
    float=batch_norm,
    quantised=quantised_batch_norm,
)
layer_type(
    "BiasAdd",
    summary="An addend per channel.",
    use="sometimes",
    fusion=Fusion.BROADCAST,
    attributes=(Attribute("axis", "int", "the axis of the channels", "last"),),
    constants=(
        Constant("biases", "[C]", "addends"),
        Constant(
            "scale1", "[C] or [1]", "of integers with scales per channel: factors of the input", True, "quantised"
        ),
        Constant("scale2", "[C] or [1]", "the same: factors of the sum", True, "quantised"),
    ),
    float=bias_add,
    quantised=quantised_bias_add,
)
