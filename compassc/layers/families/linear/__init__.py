"""Convolutions, fully connected layers, matrix products and batch normalisation."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, DeclaredType, declare_table
from compassc.layers.families.linear.bodies import (
    batch_norm_body,
    bias_add_body,
    convolution_body,
    fully_connected_body,
    matmul_body,
)
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
from compassc.operators.patterns import Filters, PatternKind

_TRANSPOSED = (
    Attribute("trans_a", "flag", "the left operand's last two axes are swapped first", "false"),
    Attribute("trans_b", "flag", "the right operand's last two axes are swapped first", "false"),
)

TABLE = (
    DeclaredType(
        "Convolution",
        "Sums of products under a window that slides over an NHWC image.",
        "common",
        (convolution, quantised_convolution),
        body=convolution_body,
        attributes=(NUM_OUTPUT, GROUP, *ATTRIBUTES_2D, WITH_ACTIVATION),
        constants=(WEIGHTS, BIASES),
        pattern=PatternKind.ANCHOR,
        filters=Filters.BY_OUTPUT,
    ),
    DeclaredType(
        "DepthwiseConv",
        "A convolution with a group per input channel.",
        "common",
        (convolution, quantised_convolution),
        body=convolution_body,
        attributes=(
            NUM_OUTPUT,
            GROUP,
            Attribute("multiplier", "count", "output channels per input channel", "1"),
            *ATTRIBUTES_2D,
            WITH_ACTIVATION,
        ),
        constants=(Constant("weights", "[C*multiplier,KH,KW,1]", "one filter per output channel"), BIASES),
        pattern=PatternKind.ANCHOR,
        filters=Filters.BY_OUTPUT,
    ),
    DeclaredType(
        "Convolution3D",
        "Sums of products under a window that slides over an NDHWC volume.",
        "sometimes",
        (convolution, quantised_convolution),
        attributes=(NUM_OUTPUT, GROUP, *ATTRIBUTES_3D, WITH_ACTIVATION),
        constants=(Constant("weights", "[O,KH,KW,KD,I/group]", "the weights"), BIASES),
        pattern=PatternKind.ANCHOR,
        filters=Filters.BY_OUTPUT,
    ),
    *(
        DeclaredType(
            _name,
            "Each input element adds a filter to the output; the pads are cut off.",
            "common",
            (transposed_convolution, quantised_transposed_convolution),
            attributes=(
                NUM_OUTPUT,
                GROUP,
                *_attributes,
                WITH_ACTIVATION,
                Attribute("output_padding_x", "int", "columns added at the right", "0"),
                Attribute("output_padding_y", "int", "rows added at the bottom", "0"),
            ),
            constants=(Constant("weights", _shape, "the filters"), BIASES),
            pattern=PatternKind.ANCHOR,
            filters=Filters.TRANSPOSED,
        )
        for _name, _attributes, _shape in (
            ("ConvTranspose", ATTRIBUTES_2D, "[O/group,KH,KW,I]"),
            ("ConvTranspose3D", ATTRIBUTES_3D, "[O/group,KH,KW,KD,I]"),
        )
    ),
    DeclaredType(
        "FullyConnected",
        "x times the transposed weights, plus biases.",
        "common",
        (fully_connected, quantised_fully_connected),
        body=fully_connected_body,
        attributes=(NUM_OUTPUT, WITH_ACTIVATION),
        constants=(Constant("weights", "[O,I]", "the weights"), BIASES),
        pattern=PatternKind.ANCHOR,
        filters=Filters.BY_OUTPUT,
    ),
    DeclaredType(
        "MatMul",
        "Matrix products; leading axes broadcast.",
        "common",
        (matmul, quantised_matmul),
        body=matmul_body,
        attributes=(*_TRANSPOSED, Attribute("fused_multiplier", "float", "a factor of the product", "1", form="float")),
        inputs="a, b",
        pattern=PatternKind.ANCHOR,
    ),
    DeclaredType(
        "Gemm",
        "alpha times the product of two matrices, plus beta times a third.",
        "sometimes",
        (gemm, quantised_gemm),
        attributes=(
            *_TRANSPOSED,
            Attribute("alpha", "float", "the factor of the product", "1"),
            Attribute("beta", "float", "the factor of c", "1"),
        ),
        inputs="a, b[, c]",
        pattern=PatternKind.ANCHOR,
    ),
    DeclaredType(
        "MatMulInteger",
        "Products of matrices of whole numbers less their zero points.",
        "rare",
        matmul_integer,
        attributes=(
            Attribute("a_zero_point", "int", "subtracted from a", "0"),
            Attribute("b_zero_point", "int", "subtracted from b", "0"),
        ),
        inputs="a, b",
        pattern=PatternKind.ANCHOR,
    ),
    DeclaredType(
        "ConvInteger",
        "A convolution of whole numbers less their zero points; the result is int32.",
        "rare",
        conv_integer,
        attributes=(
            NUM_OUTPUT,
            GROUP,
            *ATTRIBUTES_2D,
            Attribute("x_zero_point", "int", "subtracted from x", "0"),
            Attribute("w_zero_point", "int", "subtracted from the weights", "0"),
        ),
        constants=(WEIGHTS, BIASES),
        pattern=PatternKind.ANCHOR,
    ),
    DeclaredType(
        "BatchNorm",
        "A factor and an addend per channel.",
        "common",
        (batch_norm, quantised_batch_norm),
        body=batch_norm_body,
        attributes=(Attribute("axis", "int", "the axis of the channels", "last"), WITH_ACTIVATION),
        constants=(Constant("weights", "[C]", "factors"), Constant("biases", "[C]", "addends")),
        pattern=PatternKind.BROADCAST,
    ),
    DeclaredType(
        "BiasAdd",
        "An addend per channel.",
        "sometimes",
        (bias_add, quantised_bias_add),
        body=bias_add_body,
        attributes=(Attribute("axis", "int", "the axis of the channels", "last"),),
        constants=(
            Constant("biases", "[C]", "addends"),
            Constant(
                "scale1", "[C] or [1]", "of integers with scales per channel: factors of the input", True, "quantised"
            ),
            Constant("scale2", "[C] or [1]", "the same: factors of the sum", True, "quantised"),
        ),
        pattern=PatternKind.BROADCAST,
    ),
)
declare_table(TABLE, PatternKind.OPAQUE)
